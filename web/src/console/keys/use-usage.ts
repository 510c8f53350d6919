import { type Resource, useResource } from '../../resource.ts';
import { usageOf } from '../buyer/usage.ts';
import { lastDays } from '../shared/days.ts';
import type { Key } from './tree.ts';

type Used = {
  readonly calls: number;
  readonly spent: number;
  /** Whether something of what the account spent was given back: budgets count it no longer. */
  readonly hasBack: boolean;
  /** Names of called services of the account. */
  readonly names: ReadonlyMap<string, string>;
};
/** The usage of a key in the last 30 days; null: not known. */
export type UsageOf = (key: Key) => Used | null;

/** Maximum keys for which the API reports usage. */
const MAX_USED = 1_000;

/** @param version a different number makes it ask again */
export function useUsage(version: number): Resource<UsageOf> {
  const from = lastDays(30)[0] ?? '';
  return useResource(`${from} ${version}`, async (signal) => {
    const { by_key: rows, by_service: services, total_refunded: back = 0 } = await usageOf({ from, limit: 1 }, signal);
    const names = new Map(services.map(({ service_id, service_name }) => [service_id, service_name]));
    const rest = { names, hasBack: back > 0 };
    const byKey = new Map(rows.map((row) => [row.key_id, { ...row, ...rest }]));
    // A key that was not used has no row.
    const missing = rows.length < MAX_USED ? { calls: 0, spent: 0, ...rest } : null;
    return (key: Key) => byKey.get(key.key_id) ?? missing;
  });
}

const MAX_CALLED = 8;

/** Services that the account has called: what a key is for has mostly been tried before. */
export function useCalled(): readonly { readonly service_id: string; readonly service_name: string }[] {
  const used = useResource('called', (signal) => usageOf({ limit: 1 }, signal));
  return (used.data?.by_service ?? []).slice(0, MAX_CALLED);
}
