import { dataOf, type Schemas } from '../../api/client.ts';
import { money } from '../../i18n/format.ts';
import { api, session } from '../../session.ts';
import { shortId } from '../shared/ids.tsx';

export type Usage = Schemas['AccountUsage'];
export type Call = Schemas['UsageRecord'];
type UsageQuery = {
  readonly from?: string;
  readonly to?: string;
  readonly key_id?: string;
  readonly service_id?: string;
  readonly outcome?: 'completed' | 'refunded';
  readonly tag?: string;
  readonly cursor?: string;
  readonly limit?: number;
};

/** Calls of all keys of the account, and their sums. A key with a parent gets only its own calls and those of the keys below it. */
export const usageOf = (query: UsageQuery, signal: AbortSignal): Promise<Usage> =>
  // The same address can also answer in CSV, but not to this request.
  dataOf(api.value.GET('/api/v1/usage', { params: { query }, signal })) as Promise<Usage>;

/** The same calls as a file. */
export const usageFile = (query: UsageQuery) =>
  api.value.GET('/api/v1/usage', { params: { query }, headers: { Accept: 'text/csv' }, parseAs: 'blob' });

/** `, $0.0035 of it given back`; nothing was given back: empty. */
export const givenBack = (refunded: number | undefined, language: string): string =>
  refunded === undefined || refunded === 0 ? '' : `, ${money(refunded, language)} of it given back`;

/** What the sums of `usageOf` cover for the key of this tab, in words. */
export const whose = (): string =>
  session.value?.me.parent_key_id === undefined ? 'the account' : 'this key and the keys below it';

type NamedKey = { readonly key_id: string; readonly label: string | null };

/** The name of each key: its label, and its id if the label is not unique. */
export function keyNames(keys: readonly NamedKey[]): ReadonlyMap<string, string> {
  const isShared = (label: string): boolean => keys.filter((key) => key.label === label).length > 1;
  return new Map(
    keys.map(({ key_id: id, label }) => [
      id,
      label === null ? shortId(id) : isShared(label) ? `${label} ${shortId(id)}` : label,
    ]),
  );
}

/** @param from  the first day (UTC) */
export const callsOfKey = (keyId: string, from?: string): string =>
  `/console/calls?key_id=${keyId}${from === undefined ? '' : `&from=${from}`}`;

/** @param from  the first day (UTC) */
export const callsOfTag = (tag: string, from?: string): string =>
  `/console/calls?tag=${encodeURIComponent(tag)}${from === undefined ? '' : `&from=${from}`}`;

/** Whether the tags of calls need a column and a filter. Unknown for a key with a parent, which has no sums by tag. */
export const hasTags = (usage: Usage | null): boolean =>
  usage !== null && (usage.by_tag === undefined || usage.by_tag.length > 0);
