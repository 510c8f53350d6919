/**
 * The two questions that decide what a history of faults has done to a shard (docs/decisions: 'The wallet follows Postgres').
 *
 * Does Postgres have everything that was ever trimmed from this shard? If it lacks a flush after which Redis was trimmed, Postgres
 * is older, and nothing may be done that relies on it. Could Redis have changed since the last look? That is *doubt*.
 *
 * Pure functions: the writer, the loading of wallets and the comparison pass them what they have read.
 */

/**
 * Names a flush. Numbers begin at 1 and only grow. The number alone is not enough: a Postgres that went back gives it to another
 * flush.
 */
export type Mark = { readonly flushId: number; readonly token: string };

/** What one script reads in Redis at one instant. */
export type Seen = {
  /** The last flush after which the shard's stream was trimmed; null: none yet, or Redis lost the mark. */
  readonly mark: Mark | null;
  /** Run id and replication id of the Redis that answers. */
  readonly dataId: string;
};

/** What Postgres keeps for a shard. */
export type ShardHistory = {
  /** Null before the first look. */
  readonly dataId: string | null;
  /** How often Redis may have changed unnoticed. */
  readonly doubt: number;
  /** The `doubt` with which the last clean comparison began. Never more than `doubt`. */
  readonly verified: number;
};

export type Verdict = 'as known' | 'redis may have changed' | 'postgres is older';

/**
 * A missing mark, or one older than a mark that was seen, does not indicate a change: only FLUSHALL does that to a Redis that keeps
 * its ids, and the data lost to FLUSHALL are loaded again exactly. A Redis that comes back older, or follows another, has other
 * ids.
 *
 * @param history read after `seen`, in a snapshot begun after it, which includes every flush trimmed by then
 * @param isInJournal whether the journal has a flush with exactly this mark; true if there is no mark
 */
export function judge(seen: Seen, history: ShardHistory, isInJournal: boolean): Verdict {
  if (seen.mark !== null && !isInJournal) return 'postgres is older';
  return seen.dataId === history.dataId ? 'as known' : 'redis may have changed';
}

/** The history to store after the verdict `redis may have changed`. The next look at the same Redis then finds it as known. */
export function withDoubt(history: ShardHistory, { dataId }: Seen): ShardHistory {
  return { ...history, dataId, doubt: history.doubt + 1 };
}

export function isInDoubt({ doubt, verified }: ShardHistory): boolean {
  return doubt > verified;
}

/** The history of one account of the shard. @param isLeft whether the comparison that verified the shard left the account in doubt */
export function historyOfAccount(history: ShardHistory, isLeft: boolean): ShardHistory {
  return isLeft ? { ...history, verified: history.doubt - 1 } : history;
}

/** What a clean comparison stores. @param began the `doubt` with which it began: a later one is not verified by it */
export function verifiedBy(history: ShardHistory, began: number): ShardHistory {
  return { ...history, verified: Math.max(history.verified, began) };
}
