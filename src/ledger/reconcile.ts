import type { Sql, Tx } from '../platform/postgres.ts';
import type { RedisClient } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { dayName } from './flush-sql.ts';
import { FLUSH_LOCK } from './locks.ts';
import { readEntries } from './stream.ts';
import { chargedMicros } from './usage-event.ts';

const SCAN_COUNT = 1_000;
const STREAM_PAGE = 5_000;

/** What Redis and Postgres say about the accounts of one shard. Amounts in micro-USD. */
export type ShardState = {
  /** Loaded wallets by account. */
  readonly wallets: ReadonlyMap<string, WalletState>;
  /** Settled balances by account, and how much of each are credits that the wallet does not have yet. */
  readonly settled: ReadonlyMap<string, { readonly balanceMicros: number; readonly missingCreditsMicros: number }>;
  /** Taken by open holds, by account. */
  readonly heldMicros: ReadonlyMap<string, number>;
  /** Charged by events in the stream that are not in Postgres, by account. */
  readonly streamedMicros: ReadonlyMap<string, number>;
};

type WalletState = { readonly balanceMicros: number; readonly creditSeq: number };

export type Drift = {
  readonly accountId: string;
  readonly walletMicros: number;
  readonly expectedMicros: number;
  /** `wallet − expected`: positive is money the account can spend and should not have. */
  readonly driftMicros: number;
};

export type ShardReport = {
  readonly shard: number;
  /** Loaded wallets; one that is not loaded cannot drift. */
  readonly wallets: number;
  readonly driftMicros: number;
  /** Accounts with a drift, largest first. */
  readonly drifts: readonly Drift[];
};

/**
 * The money identity (DESIGN.md, 'Redis'), per account:
 * `wallet = settled balance − credits not in the wallet yet − amounts in the stream not yet stored − open holds`.
 *
 * @returns the accounts where it does not hold, largest drift first
 */
export function findDrifts(state: ShardState): Drift[] {
  const drifts: Drift[] = [];
  for (const [accountId, wallet] of state.wallets) {
    const settled = state.settled.get(accountId) ?? { balanceMicros: 0, missingCreditsMicros: 0 };
    const expectedMicros =
      settled.balanceMicros -
      settled.missingCreditsMicros -
      (state.streamedMicros.get(accountId) ?? 0) -
      (state.heldMicros.get(accountId) ?? 0);
    const driftMicros = wallet.balanceMicros - expectedMicros;
    if (driftMicros !== 0) {
      drifts.push({ accountId, walletMicros: wallet.balanceMicros, expectedMicros, driftMicros });
    }
  }
  return drifts.sort((a, b) => Math.abs(b.driftMicros) - Math.abs(a.driftMicros));
}

export type ReconcileOptions = { readonly sql: Sql; readonly redis: RedisClient; readonly keys: RedisKeys };

/**
 * Compares one shard. It holds the shard's flush lock, so nothing moves from the stream into Postgres meanwhile; but
 * Redis is read in several steps, so with traffic running a call or a credit may show as a drift of its amount. What is
 * there a second time is a drift. An event in `rejected_events` is one, too: it was charged and is not in the books.
 */
export async function reconcileShard({ sql, redis, keys }: ReconcileOptions, shard: number): Promise<ShardReport> {
  return sql.begin(async (tx) => {
    await tx`SELECT pg_advisory_xact_lock(${FLUSH_LOCK}::int, ${shard}::int)`;
    const streamedMicros = await readStreamed(tx, redis, keys, shard);
    const heldMicros = await readHeld(redis, keys, shard);
    const wallets = await readWallets(redis, keys, shard);
    const settled = await readSettled(tx, wallets);
    const drifts = findDrifts({ wallets, settled, heldMicros, streamedMicros });
    const driftMicros = drifts.reduce((sum, drift) => sum + drift.driftMicros, 0);
    return { shard, wallets: wallets.size, driftMicros, drifts };
  });
}

/** All shards, one after the other: each keeps its own flushes and wallet loads waiting, never all at once. */
export async function reconcile(options: ReconcileOptions): Promise<ShardReport[]> {
  const reports: ShardReport[] = [];
  for (let shard = 0; shard < options.keys.shards; shard++) reports.push(await reconcileShard(options, shard));
  return reports;
}

async function readStreamed(tx: Tx, redis: RedisClient, keys: RedisKeys, shard: number): Promise<Map<string, number>> {
  const streamed = new Map<string, number>();
  let entries = await readEntries({ redis, keys }, shard, null, STREAM_PAGE);
  while (entries.length > 0) {
    const events = entries.flatMap(({ event }) => (event === null ? [] : [event]));
    const ids = events.map(({ usageId }) => usageId);
    // Committed and not deleted yet.
    const rows = await tx<{ id: string }[]>`
      SELECT c.usage_id AS id FROM unnest(${ids.map(dayName)}::date[], ${ids}::uuid[]) AS asked (day, id)
      JOIN calls c ON c.day = asked.day AND c.usage_id = asked.id`;
    const stored = new Set(rows.map(({ id }) => id));
    for (const event of events) {
      if (!stored.has(event.usageId)) add(streamed, event.accountId, chargedMicros(event));
    }
    entries = await readEntries({ redis, keys }, shard, entries.at(-1)?.id as string, STREAM_PAGE);
  }
  return streamed;
}

async function readHeld(redis: RedisClient, keys: RedisKeys, shard: number): Promise<Map<string, number>> {
  const held = new Map<string, number>();
  const holds = (await redis.command('hvals', [keys.open[shard] as string])) as string[];
  for (const hold of holds) {
    const [amount, , , , accountId] = hold.split('\t', 5);
    // A tombstone has no account and holds nothing.
    if (accountId !== undefined) add(held, accountId, Number(amount));
  }
  return held;
}

async function readWallets(redis: RedisClient, keys: RedisKeys, shard: number): Promise<Map<string, WalletState>> {
  const wallets = new Map<string, WalletState>();
  const prefix = keys.wallet(shard, '');
  let cursor = '0';
  do {
    const args = [cursor, 'MATCH', `${prefix}*`, 'COUNT', String(SCAN_COUNT)];
    const [next, names] = (await redis.command('scan', args)) as [string, string[]];
    cursor = next;
    const values = await Promise.all(names.map((name) => redis.command('hmget', [name, 'balance', 'credit_seq'])));
    names.forEach((name, i) => {
      const [balance, creditSeq] = values[i] as [string | null, string | null];
      if (balance === null) return;
      wallets.set(name.slice(prefix.length), { balanceMicros: Number(balance), creditSeq: Number(creditSeq) });
    });
  } while (cursor !== '0');
  return wallets;
}

async function readSettled(tx: Tx, wallets: ReadonlyMap<string, WalletState>): Promise<ShardState['settled']> {
  const ids = Array.from(wallets.keys());
  const seqs = Array.from(wallets.values(), ({ creditSeq }) => creditSeq);
  // One statement: the balance is that of exactly these credits.
  const rows = await tx<{ id: string; balanceMicros: number; missingCreditsMicros: number }[]>`
    SELECT asked.id, coalesce(b.balance, 0) AS "balanceMicros",
           (SELECT coalesce(sum(c.amount), 0)::bigint FROM credits c
            WHERE c.account_id = asked.id AND c.seq > asked.seq) AS "missingCreditsMicros"
    FROM unnest(${ids}::uuid[], ${seqs}::bigint[]) AS asked (id, seq)
    LEFT JOIN balances b ON b.account_id = asked.id AND b.ledger = 'wallet'`;
  return new Map(rows.map((row) => [row.id, row]));
}

function add(sums: Map<string, number>, key: string, amount: number): void {
  sums.set(key, (sums.get(key) ?? 0) + amount);
}
