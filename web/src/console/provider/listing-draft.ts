import type { Schemas } from '../../api/client.ts';
import { comingCost } from '../../cost.ts';
import { readAmount } from '../shared/amount.ts';
import { sentence } from '../shared/sentence.ts';
import {
  CATEGORY_PATTERN,
  DEFAULT_TIMEOUT_SECONDS,
  descriptionFault,
  docsUrlFault,
  endpointFault,
  headerNameFault,
  healthPathFault,
  MAX_CATEGORY_LENGTH,
  MAX_DESCRIPTION_LENGTH,
  MAX_FREE_CALLS,
  MAX_IDLE_SECONDS,
  nameFault,
  parameterNameFault,
  secretValueFault,
} from './rules.ts';

type Service = Schemas['Service'];
type Change = Schemas['ServiceChange'];
export type PairDraft = { readonly name: string; readonly value: string };

/** The content of the form: texts as typed. */
export type Draft = {
  readonly name: string;
  readonly description: string;
  readonly category: string;
  readonly endpoint: string;
  readonly price: string;
  /** '': calls cost the price. */
  readonly max_price: string;
  readonly free_calls: string;
  readonly timeout_seconds: string;
  readonly idle_seconds: string;
  readonly docs_url: string;
  readonly health_path: string;
  readonly protocol: 'http' | 'mcp';
  readonly only_operations: boolean;
  readonly forward_headers: readonly string[];
  readonly signed: boolean;
  /** null: the listing's present ones are kept. Their values are not known here. */
  readonly upstream_headers: readonly PairDraft[] | null;
  readonly upstream_query: readonly PairDraft[] | null;
};
export type DraftField = keyof Draft;
export type Faults = Partial<Record<DraftField, string>>;

export const EMPTY_DRAFT: Draft = {
  name: '',
  description: '',
  category: '',
  endpoint: '',
  price: '',
  max_price: '',
  free_calls: '',
  timeout_seconds: String(DEFAULT_TIMEOUT_SECONDS),
  idle_seconds: '',
  docs_url: '',
  health_path: '',
  protocol: 'http',
  only_operations: false,
  forward_headers: [],
  signed: false,
  upstream_headers: null,
  upstream_query: null,
};

/** The form of a listing. It shows an announced price, because that is what the provider wrote last. */
export function draftOf(service: Service): Draft {
  const next = service.next_price;
  const freeCalls = next?.free_calls ?? service.free_calls ?? 0;
  const coming = comingCost(service);
  return {
    name: service.name,
    description: service.description,
    category: service.category,
    endpoint: service.endpoint ?? '',
    price: String(coming.price),
    max_price: String(coming.max_price ?? ''),
    free_calls: freeCalls === 0 ? '' : String(freeCalls),
    timeout_seconds: String(service.timeout_seconds),
    idle_seconds: service.idle_seconds === undefined ? '' : String(service.idle_seconds),
    docs_url: service.docs_url ?? '',
    health_path: service.health_path ?? '',
    protocol: service.protocol,
    only_operations: next?.only_operations ?? service.only_operations,
    forward_headers: service.forward_headers ?? [],
    signed: service.signed ?? false,
    upstream_headers: null,
    upstream_query: null,
  };
}

/** What the gateway would refuse, by field. Empty if everything is valid. */
export function faultsOf(draft: Draft): Faults {
  const faults: Record<string, string | null> = {
    name: draft.name.trim() === '' ? 'is needed' : nameFault(draft.name.trim()),
    description: lengthFault(draft.description, MAX_DESCRIPTION_LENGTH) ?? descriptionFault(draft.description),
    category: categoryFault(draft.category),
    endpoint: draft.endpoint === '' ? 'is needed' : endpointFault(draft.endpoint),
    price: draft.price.trim() === '' ? 'is needed; 0 makes every call free' : readAmount(draft.price).fault,
    max_price: maxPriceFault(draft.max_price, draft.price),
    free_calls: wholeFault(draft.free_calls, 1, MAX_FREE_CALLS),
    timeout_seconds: draft.timeout_seconds.trim() === '' ? 'is needed' : wholeFault(draft.timeout_seconds, 1, 300),
    idle_seconds: wholeFault(draft.idle_seconds, 1, MAX_IDLE_SECONDS),
    docs_url: draft.docs_url === '' ? null : docsUrlFault(draft.docs_url),
    health_path: draft.health_path === '' ? null : healthPathFault(draft.health_path),
    upstream_headers: pairsFault(draft.upstream_headers, draft.endpoint, 'header', headerNameFault),
    upstream_query: pairsFault(draft.upstream_query, draft.endpoint, 'parameter', parameterNameFault),
  };
  const found = Object.entries(faults).filter((entry): entry is [string, string] => entry[1] !== null);
  return Object.fromEntries(found.map(([field, fault]) => [field, sentence(fault)]));
}

const lengthFault = (text: string, max: number): string | null =>
  [...text].length > max ? `must be at most ${max} characters` : null;

/** @param price as typed, too; '': none */
export function maxPriceFault(max: string, price: string): string | null {
  if (max.trim() === '') return null;
  const read = readAmount(max);
  return read.fault ?? (read.usd < (readAmount(price).usd ?? 0) ? 'must be at least the price' : null);
}

/** Null: none, or the text is not an amount. */
export const maxPriceOf = (max: string): number | null => (max.trim() === '' ? null : readAmount(max).usd);

function categoryFault(category: string): string | null {
  if (category === '') return 'is needed';
  if (category.length > MAX_CATEGORY_LENGTH) return `must be at most ${MAX_CATEGORY_LENGTH} characters`;
  return new RegExp(CATEGORY_PATTERN).test(category)
    ? null
    : 'must be lower-case words joined by hyphens, such as web-search';
}

function wholeFault(text: string, min: number, max: number): string | null {
  const value = text.trim();
  if (value === '') return null;
  const isGood = /^\d{1,10}$/.test(value) && Number(value) >= min && Number(value) <= max;
  return isGood ? null : `must be a whole number from ${min} to ${max.toLocaleString('en')}`;
}

function pairsFault(
  pairs: readonly PairDraft[] | null,
  endpoint: string,
  noun: 'header' | 'parameter',
  nameFault: (name: string) => string | null,
): string | null {
  if (pairs === null || pairs.length === 0) return null;
  for (const { name, value } of pairs) {
    const fault = name === '' ? `each ${noun} needs a name` : nameFault(name);
    if (fault !== null) return fault;
    if (value === '') return `${name} needs a value: values are replaced together`;
    const bad = secretValueFault(value);
    if (bad !== null) return `the value of ${name} ${bad}`;
  }
  const isHere = /^http:\/\/(localhost|127\.|\[::1\]|10\.|192\.168\.)/.test(endpoint);
  return endpoint.startsWith('http://') && !isHere
    ? 'needs an https endpoint. Otherwise anyone between the gateway and the service could read the values'
    : null;
}

const whole = (text: string): number | null => (text.trim() === '' ? null : Number(text.trim()));

/** All fields of the form as the API takes them; null means that there is none. */
function fieldsOf(draft: Draft) {
  return {
    name: draft.name.trim(),
    description: draft.description,
    category: draft.category,
    endpoint: draft.endpoint,
    price: readAmount(draft.price).usd ?? 0,
    max_price: maxPriceOf(draft.max_price),
    free_calls: whole(draft.free_calls),
    timeout_seconds: whole(draft.timeout_seconds) ?? DEFAULT_TIMEOUT_SECONDS,
    idle_seconds: whole(draft.idle_seconds),
    docs_url: draft.docs_url === '' ? null : draft.docs_url,
    health_path: draft.health_path === '' ? null : draft.health_path,
    only_operations: draft.only_operations,
    forward_headers: [...draft.forward_headers].sort(),
    signed: draft.signed,
  };
}

const addedOf = ({ upstream_headers: headers, upstream_query: query }: Draft) => ({
  ...(headers === null ? {} : { upstream_headers: recordOf(headers) }),
  ...(query === null ? {} : { upstream_query: recordOf(query) }),
});
const recordOf = (pairs: readonly PairDraft[]) => Object.fromEntries(pairs.map(({ name, value }) => [name, value]));

/** The body of `POST /services`. */
export function newServiceOf(draft: Draft): Schemas['NewService'] {
  const set = Object.entries(fieldsOf(draft)).filter(([, value]) => value !== null);
  return { ...Object.fromEntries(set), protocol: draft.protocol, ...addedOf(draft) } as Schemas['NewService'];
}

/** The body of `PATCH /services/{id}`: only what differs from the listing, so that nothing else is overwritten. */
export function changeOf(draft: Draft, before: Draft): Change {
  const [now, old] = [fieldsOf(draft), fieldsOf(before)];
  const changed = Object.entries(now).filter(
    ([name, value]) => JSON.stringify(value) !== JSON.stringify(old[name as keyof typeof old]),
  );
  return { ...Object.fromEntries(changed), ...addedOf(draft) } as Change;
}
