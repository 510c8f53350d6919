import type { Sums } from './sums-sql.ts';

/** Maximum days of a page: the newest with calls. */
export const MAX_DAYS = 366;
/** How many keys each day names: those that spent the most in the whole range. */
export const MAX_KEYS_OF_DAY = 8;

export type ServiceUsage = Sums & { readonly serviceId: string; readonly serviceName: string };
export type KeyUsage = Sums & {
  readonly keyId: string;
  readonly label: string | null;
  /** Null: it has none. */
  readonly parentKeyId: string | null;
};
export type DayUsage = Sums & {
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  /** Of the keys that spent the most in the whole range: `MAX_KEYS_OF_DAY` of them at most. */
  readonly byKey: readonly (Sums & { readonly keyId: string })[];
};

/** The sums of a page of usage, in lists. */
export type ListedSums = {
  /** In descending order of money spent. */
  readonly byService: readonly ServiceUsage[];
  /** In descending order of money spent, `MAX_KEYS` at most. */
  readonly byKey: readonly KeyUsage[];
  /** Days with calls, newest first, `MAX_DAYS` at most. */
  readonly byDay: readonly DayUsage[];
};
