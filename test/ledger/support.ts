import fc from 'fast-check';
import { expect } from 'vitest';
import { keepLayout, layoutOf } from '../../src/ledger/layout.ts';
import { PLATFORM_ACCOUNT_ID } from '../../src/ledger/posting.ts';
import { Reconciler } from '../../src/ledger/reconcile/reconciler.ts';
import { readRedisRun } from '../../src/ledger/redis-run.ts';
import {
  type BudgetPart,
  chargedMicros,
  encodeSettlement,
  feeMicros,
  type UsageEvent,
  useOf,
} from '../../src/ledger/usage-event.ts';
import { UsageWriter, type UsageWriterOptions } from '../../src/ledger/writing/writer.ts';
import { dayOfId, uuidv7 } from '../../src/platform/ids.ts';
import type { Sql } from '../../src/platform/postgres.ts';
import { openTestDatabase } from '../support/accounts.ts';
import { readBooksQueries } from '../support/books-queries.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { WRONG_REFUND_SUMS } from '../support/refund-sums.ts';
import { QUIET, Store } from '../support/store.ts';
import type { TestDatabase } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import { compareSums } from './rollups/sums-oracle.ts';

export const FEE_BASIS_POINTS = 250;

/** A Redis and a migrated database that only this test file uses. */
export class Ledger {
  readonly store: Store;
  readonly sql: Sql;
  readonly databaseUrl: string;
  readonly #close: () => Promise<void>;
  readonly #writers: UsageWriter[] = [];

  private constructor(store: Store, database: Awaited<ReturnType<typeof openTestDatabase>>) {
    this.store = store;
    this.sql = database.sql;
    this.databaseUrl = database.url;
    this.#close = database.close;
  }

  /** @param empty  the database to use, instead of one in the Postgres that all tests share */
  static async open(empty?: TestDatabase): Promise<Ledger> {
    const [store, database] = await Promise.all([Store.open(), openTestDatabase(empty)]);
    // As the first start does.
    await keepLayout(database.sql, layoutOf(store));
    return new Ledger(store, database);
  }

  async close(): Promise<void> {
    await this.stopWriters();
    await this.#close();
    await this.store.close();
  }

  /** Empties Redis and the database. */
  async clear(): Promise<void> {
    await this.stopWriters();
    await this.store.command('flushall');
    await emptyDatabase(this.sql);
  }

  /** Makes what Redis has known, as after a clean comparison: until it restarts or is replaced, a drift is not taken for its fault. */
  async knowRedis(): Promise<void> {
    const { dataId } = await readRedisRun(this.store.redis);
    await this.sql`
      INSERT INTO shard_histories (shard, data_id, doubt, verified)
      SELECT shard, ${dataId}, 1, 1 FROM generate_series(0, ${this.store.keys.shards - 1}::int) AS shard`;
  }

  /** Makes the partition of a day (YYYY-MM-DD), as the writer does a week ahead. */
  async partition(day: string): Promise<void> {
    await this.sql.unsafe(
      `CREATE TABLE calls_${day.replaceAll('-', '')} PARTITION OF calls FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`,
    );
  }

  writer(options: Partial<UsageWriterOptions> = {}): UsageWriter {
    const writer = new UsageWriter({
      databaseUrl: this.databaseUrl,
      redis: this.store.redis,
      redisUrl: this.store.server.url,
      keys: this.store.keys,
      feeBasisPoints: FEE_BASIS_POINTS,
      log: QUIET,
      ...options,
    });
    this.#writers.push(writer);
    return writer;
  }

  startWriter(options: Partial<UsageWriterOptions> = {}): UsageWriter {
    const writer = this.writer(options);
    writer.start();
    return writer;
  }

  /** A new reconciler, with what it needs, as another process would have. */
  reconciler(): Reconciler {
    return new Reconciler({ sql: this.sql, redis: this.store.redis, keys: this.store.keys });
  }

  async stopWriters(): Promise<void> {
    await Promise.all(this.#writers.splice(0).map((writer) => writer.stop()));
  }

  /** Appends an event as the scripts do. */
  async append(...events: UsageEvent[]): Promise<void> {
    await Promise.all(
      events.map((event) => this.appendRaw(event.accountId, event.usageId, holdOf(event), tailOf(event))),
    );
  }

  async appendRaw(accountId: string, usageId: string, hold: string, settlement: string, field = 'e1'): Promise<void> {
    const stream = this.store.keys.usage[this.store.keys.shardOf(accountId)] as string;
    await this.store.command('xadd', stream, '*', field, [usageId, hold, settlement].join('\t'));
  }

  /** Writes a wallet with one credit and no debit, whatever the books say. */
  async setWallet(accountId: string, balanceMicros: number): Promise<void> {
    await this.store.loadWallet(accountId, balanceMicros, { debit_seq: 0, debited: 0 });
  }

  async backlog(): Promise<number> {
    const lengths = await Promise.all(this.store.keys.usage.map((stream) => this.store.command('xlen', stream)));
    return (lengths as number[]).reduce((sum, length) => sum + length, 0);
  }

  async drained(timeoutMs?: number): Promise<void> {
    await until(async () => (await this.backlog()) === 0, timeoutMs);
  }

  /** Advisory locks in this database, either granted or waited for. (Other test files use the same server.) */
  async advisoryLocks({ granted }: { granted: boolean }): Promise<readonly { classid: number; mode: string }[]> {
    return this.sql<{ classid: number; mode: string }[]>`
      SELECT classid::int, mode FROM pg_locks JOIN pg_database d ON d.oid = database
      WHERE locktype = 'advisory' AND granted = ${granted} AND d.datname = current_database()`;
  }

  /** Makes an account with a balance, as a credit would have done. */
  async account(balanceMicros: number): Promise<string> {
    const id = uuidv7();
    await this.sql`INSERT INTO accounts (id, owner_id, credit_seq) VALUES (${id}, 'buyer', 0)`;
    await this.credit(id, balanceMicros);
    return id;
  }

  /** Stores a credit in Postgres only. @returns its number */
  async credit(accountId: string, amountMicros: number): Promise<number> {
    return this.sql.begin(async (tx) => {
      const [account] = await tx<{ seq: number }[]>`
        UPDATE accounts SET credit_seq = credit_seq + 1 WHERE id = ${accountId} RETURNING credit_seq AS seq`;
      const seq = account?.seq as number;
      const [journal] = await tx<{ id: number }[]>`INSERT INTO journal (kind) VALUES ('credit') RETURNING id`;
      const id = journal?.id as number;
      await tx`
        INSERT INTO credits (account_id, seq, amount, reference, journal_id)
        VALUES (${accountId}, ${seq}, ${amountMicros}, ${uuidv7()}, ${id})`;
      await tx`
        INSERT INTO entries VALUES (${id}, ${accountId}, 'wallet', ${amountMicros}),
                                   (${id}, ${PLATFORM_ACCOUNT_ID}, 'cash', ${-amountMicros})`;
      await tx`
        INSERT INTO balances AS b VALUES (${accountId}, 'wallet', ${amountMicros})
        ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;
      await tx`
        INSERT INTO balances AS b VALUES (${PLATFORM_ACCOUNT_ID}, 'cash', ${-amountMicros})
        ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;
      return seq;
    });
  }

  async balance(accountId: string, ledger = 'wallet'): Promise<number> {
    const rows = await this.sql<{ balance: number }[]>`
      SELECT balance FROM balances WHERE account_id = ${accountId} AND ledger = ${ledger}`;
    return rows[0]?.balance ?? 0;
  }

  /** The books as a comparable value, after checking that they are consistent. */
  async readBooks(): Promise<Books> {
    const { sql } = this;
    expect(await sql`SELECT journal_id FROM entries GROUP BY 1 HAVING sum(amount) <> 0`).toEqual([]);
    expect(await sql`SELECT journal_id FROM entries WHERE amount = 0`).toEqual([]);
    expect(await sql`SELECT journal_id FROM calls WHERE journal_id NOT IN (SELECT id FROM journal)`).toEqual([]);
    const wrong = await sql`
      SELECT * FROM balances b
      FULL JOIN (SELECT account_id, ledger, sum(amount)::bigint AS sum FROM entries GROUP BY 1, 2) e
        USING (account_id, ledger)
      WHERE b.balance IS DISTINCT FROM e.sum`;
    expect(wrong, 'balances are the sums of their entries').toEqual([]);
    const calls = await sql`
      SELECT usage_id, to_char(day, 'YYYY-MM-DD') AS day, account_id, key_id, provider_id, service_id, method, path,
             status, amount, fee, free_tier, outcome, latency_us, request_bytes, response_bytes, created_at,
             authorized, clamped, at_cap, tag
      FROM calls ORDER BY usage_id`;
    const balances = await sql`
      SELECT account_id || ' ' || ledger AS key, balance AS value FROM balances WHERE ledger <> 'cash' ORDER BY 1`;
    const free = await sql`SELECT account_id || ' ' || service_id AS key, used AS value FROM free_usage ORDER BY 1`;
    const budgets = await sql`
      SELECT account_id || ' ' || key_id || '.' || period AS key, spent AS value FROM budget_usage ORDER BY 1`;
    expect(await compareSums(sql), 'the sums are those of the calls').toEqual([]);
    expect(await sql.unsafe(WRONG_REFUND_SUMS), 'the sums of refunds are theirs').toEqual([]);
    expect(await sql.unsafe(readBooksQueries().refunds), 'refunds are what the journal moved').toEqual([]);
    const days = await sql`
      SELECT service_id || ' ' || to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') AS key,
             ARRAY[sum(completed), sum(free_calls), sum(charged), sum(fees)]::bigint[] AS value
      FROM service_hours WHERE completed > 0
      GROUP BY service_id, to_char(hour AT TIME ZONE 'UTC', 'YYYY-MM-DD') ORDER BY 1`;
    const toObject = (rows: readonly object[]) =>
      Object.fromEntries((rows as { key: string; value: unknown }[]).map(({ key, value }) => [key, value]));
    return {
      calls: [...calls],
      balances: toObject(balances),
      free: toObject(free),
      budgets: toObject(budgets),
      days: toObject(days),
    };
  }
}

type Books = {
  readonly calls: readonly object[];
  readonly balances: Record<string, unknown>;
  readonly free: Record<string, unknown>;
  readonly budgets: Record<string, unknown>;
  readonly days: Record<string, unknown>;
};

export function newEvent(given: Partial<UsageEvent> = {}): UsageEvent {
  return {
    usageId: uuidv7(),
    heldMicros: 1_000,
    capturedMicros: null,
    capMicros: null,
    ceilingMicros: null,
    budgets: [],
    cause: null,
    tag: null,
    freeTier: false,
    admittedAtMs: Date.now(),
    accountId: uuidv7(),
    keyId: 'acf_0000000000000000000000',
    serviceId: uuidv7(),
    providerId: uuidv7(),
    method: 'GET',
    path: '/x',
    outcome: 'completed',
    status: 200,
    latencyUs: 1_500,
    requestBytes: 10,
    responseBytes: 20,
    ...given,
  };
}

const PARENT = { keyId: 'acf_1111111111111111111111', period: 3_020_000 };
const CHILD = { keyId: 'acf_2222222222222222222222', period: 0 };
/** The budgets that a call may count in. */
export const anyBudgets = fc.constantFrom(
  ...[[], [], [PARENT], [{ ...PARENT, period: 3_020_001 }], [PARENT, CHILD]].map((budgets) => ({ budgets })),
);

/** What a property test may add to any event to make it one of a call priced by use: its cap, ceiling and report. */
export const anyUse = fc.oneof(
  { weight: 2, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.record({
      capMicros: fc.constantFrom(0, 40, 1_000, 50_000),
      ceilingMicros: fc.constantFrom(null, 0, 39),
      capturedMicros: fc.constantFrom(null, 0, 1, 39, 40, 1_000, Number.MAX_SAFE_INTEGER),
    }),
  },
);

/** An event of an account in this shard. */
export function newEventOf(shard: number, { keys }: Store): UsageEvent {
  for (;;) {
    const event = newEvent();
    if (keys.shardOf(event.accountId) === shard) return event;
  }
}

const nameOf = ({ keyId, period }: BudgetPart): string => `${keyId}.${period}`;

export function holdOf(event: UsageEvent): string {
  const { heldMicros, freeTier, admittedAtMs, accountId, keyId, serviceId, providerId, method, path } = event;
  const tail = [accountId, keyId, serviceId, providerId, method, path];
  if (event.capMicros !== null) tail.push(`cap=${event.capMicros}`);
  if (event.ceilingMicros !== null) tail.push(`ceiling=${event.ceilingMicros}`);
  if (event.tag !== null) tail.push(`tag=${event.tag}`);
  if (event.budgets.length > 0) tail.push(`budgets=${event.budgets.map(nameOf).join(',')}`);
  return ['v1', heldMicros, freeTier ? 1 : 0, admittedAtMs, 'gateway-1', ...tail].join('\t');
}

export const tailOf = (event: UsageEvent): string =>
  encodeSettlement(event) + (event.capturedMicros === null ? '' : `\tcaptured=${event.capturedMicros}`);

/** The books after these events, however often each came. If an id comes several times, its first event counts. */
export function expectedBooks(events: readonly UsageEvent[]): Books {
  const first = new Map<string, UsageEvent>();
  for (const event of events) if (!first.has(event.usageId)) first.set(event.usageId, event);
  const balances: Record<string, number> = {};
  const free: Record<string, number> = {};
  const budgets: Record<string, number> = {};
  const days: Record<string, [number, number, number, number]> = {};
  const add = (to: Record<string, number>, key: string, n: number) => {
    to[key] = (to[key] ?? 0) + n;
  };
  for (const event of first.values()) {
    const amount = chargedMicros(event);
    const fee = feeMicros(amount, FEE_BASIS_POINTS);
    if (amount > 0) {
      add(balances, `${event.accountId} wallet`, -amount);
      if (amount > fee) add(balances, `${event.providerId} earnings`, amount - fee);
      if (fee > 0) add(balances, `${PLATFORM_ACCOUNT_ID} fees`, fee);
      for (const budget of event.budgets) add(budgets, `${event.accountId} ${nameOf(budget)}`, amount);
    }
    if (event.outcome !== 'completed') continue;
    if (event.freeTier) add(free, `${event.accountId} ${event.serviceId}`, 1);
    if (amount === 0 && (event.path.includes('#') || event.accountId === event.providerId)) continue;
    const day = `${event.serviceId} ${new Date(event.admittedAtMs).toISOString().slice(0, 10)}`;
    const sums = days[day] ?? [0, 0, 0, 0];
    days[day] = [sums[0] + 1, sums[1] + (event.freeTier ? 1 : 0), sums[2] + amount, sums[3] + fee];
  }
  const calls = Array.from(first.values())
    .sort((a, b) => (a.usageId < b.usageId ? -1 : 1))
    .map((event) => ({
      usage_id: event.usageId,
      day: dayOfId(event.usageId),
      account_id: event.accountId,
      key_id: event.keyId,
      provider_id: event.providerId,
      service_id: event.serviceId,
      method: event.method,
      path: event.path,
      status: event.status,
      amount: chargedMicros(event),
      fee: feeMicros(chargedMicros(event), FEE_BASIS_POINTS),
      free_tier: event.freeTier,
      outcome: event.outcome,
      latency_us: event.latencyUs,
      request_bytes: event.requestBytes,
      response_bytes: event.responseBytes,
      created_at: new Date(event.admittedAtMs),
      authorized: useOf(event)?.authorizedMicros ?? null,
      clamped: useOf(event)?.isClamped ?? null,
      at_cap: useOf(event)?.isAtCap ?? null,
      tag: event.tag,
    }));
  return { calls, balances, free, budgets, days };
}
