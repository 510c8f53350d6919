import type { Sums } from './sums-sql.ts';

/** Maximum days on a page: the newest days with calls. */
export const MAX_DAYS = 366;
/** How many keys each day names: those that spent the most in the whole range. */
export const MAX_KEYS_OF_DAY = 8;

export type ServiceUsage = Sums & { readonly serviceId: string; readonly serviceName: string };
export type KeyUsage = Sums & {
  readonly keyId: string;
  readonly label: string | null;
  /** Null: the key has no label. */
  readonly parentKeyId: string | null;
};
export type DayUsage = Sums & {
  /** YYYY-MM-DD, UTC. */
  readonly day: string;
  /** Only the keys that spent the most in the whole range, at most `MAX_KEYS_OF_DAY`. */
  readonly byKey: readonly (Sums & { readonly keyId: string })[];
};

/** The sums of a page of usage, in lists. */
export type ListedSums = {
  /** In descending order of money spent. */
  readonly byService: readonly ServiceUsage[];
  /** In descending order of money spent, at most `MAX_KEYS`. */
  readonly byKey: readonly KeyUsage[];
  /** Days with calls, newest first, at most `MAX_DAYS`. */
  readonly byDay: readonly DayUsage[];
};
