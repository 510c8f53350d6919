import { afterAll, beforeAll, expect, it } from 'vitest';
import { onlyKey } from '../../src/accounts/key-scope.ts';
import { selectAllCalls } from '../../src/accounts/lists/calls-sql.ts';
import { selectServiceCalls } from '../../src/accounts/service-calls-sql.ts';
import { selectStatement } from '../../src/accounts/statement-sql.ts';
import { selectCall } from '../../src/accounts/usage-sql.ts';
import { selectCallPage, selectKeyActivity, selectUsage } from '../../src/accounts/usage-sums.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { PostgresSession, type Sql } from '../../src/platform/postgres.ts';
import { type Run, templateTag } from '../../src/platform/postgres-query.ts';
import { openTestDatabase } from '../support/accounts.ts';

/**
 * What a page asks of `calls`, which has a partition for each day. Every query must reach few of them: one that reaches a thousand
 * takes long to plan, and 4 000 locks, which is two thirds of what Postgres has for all its clients together.
 *
 *   PLANNING_TIMES=1 npx vitest run test/accounts/partitions.test.ts     with 1 100 partitions; prints how long Postgres plans
 */
const DAYS = process.env.PLANNING_TIMES ? 1_100 : 200;
const DAY_MS = 86_400_000;
/** A partition and its three indexes. */
const LOCKS_OF_A_DAY = 4;
/** The widest window that a page reads (`WINDOW_DAYS`), with the days ahead, and what the other tables of a query need. */
const MOST_LOCKS = 74 * LOCKS_OF_A_DAY + 40;
/** The sums, the first three windows, all others, what is behind them. */
const MOST_QUERIES = 6 + DAYS / 64;
/** For several keys, and for calls that no index leads to: where future days begin, and a window of an hour; for recent calls the sums by hour. */
const MORE = new Map([
  ['GET /usage', 3],
  ['… of the tag other', 2],
]);
/** From the sixth execution on, Postgres considers a generic plan, which is made for all partitions. */
const TIMES = 7;

let url: string;
let close: () => Promise<void>;
const todayMs = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const [keyId, accountId, serviceId] = ['acf_0000000000000000000001', uuidv7(), uuidv7()];
const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);

beforeAll(async () => {
  const database = await openTestDatabase();
  ({ url, close } = database);
  const { sql } = database;
  await sql`INSERT INTO accounts (id, owner_id) VALUES (${accountId}, 'owner')`;
  await sql`INSERT INTO api_keys (key_id, account_id, role, secret_hash) VALUES (${keyId}, ${accountId}, 'buyer', ${'0'.repeat(64)})`;
  // A hundred at a time, because each takes locks until the end of its transaction.
  for (let first = -DAYS; first < 8; first += 100) {
    const days = Array.from({ length: Math.min(100, 8 - first) }, (_, i) => todayMs + (first + i) * DAY_MS);
    await sql.unsafe(
      days
        .map(
          (ms) =>
            `CREATE TABLE calls_${day(ms).replaceAll('-', '')} PARTITION OF calls FOR VALUES FROM ('${day(ms)}') TO ('${day(ms + DAY_MS)}')`,
        )
        .join(';'),
    );
  }
  // Their ids are later than any window, so that no page finds one of them: it would need one more query.
  await sql`
    INSERT INTO calls SELECT (created)::date, ('f' || substr(gen_random_uuid()::text, 2))::uuid, ${accountId}, ${keyId}, ${accountId}, ${serviceId}, 'GET', '/', 200, 5, 1, false,
      'completed', 9, 1, 1, created, 1
    FROM generate_series(now() - interval '1000 days', now(), interval '100 days') AS created`;
  await sql`INSERT INTO service_hours VALUES (${serviceId}, date_trunc('hour', now()), ${accountId}, 5, 5, 0, 5, 0, 0, 0, 0, 0, 0, 0, 25, 5, 9, 0, 0, now(), now())`;
  // Between its calls of this hour, so that the statement reads them.
  await sql`INSERT INTO credits (account_id, seq, amount, reference, journal_id) VALUES (${accountId}, 1, 5, 'credit', 1)`;
  await sql`INSERT INTO key_hours VALUES (${keyId}, date_trunc('hour', now()), ${serviceId}, ${accountId}, 5, 5, 0, 5, 0, 1, 25, 9, 9, date_trunc('hour', now()), now())`;
});
afterAll(() => close());

type Asked = readonly [text: string, parameters: Parameters<Run>[1], options: Parameters<Run>[2]];

/** Runs `work` on a pool of one session. @returns every query on `calls` that it made */
async function queriesOf(session: PostgresSession, work: (sql: Sql) => Promise<unknown>): Promise<Asked[]> {
  const asked: Asked[] = [];
  const run: Run = (text, parameters, options) => {
    if (/\bcalls\b/.test(text)) asked.push([text, parameters, options]);
    return session.query(text, parameters, options);
  };
  const tag = templateTag(run);
  const begin = (transaction: (tx: typeof tag) => PromiseLike<unknown>, mode?: string) =>
    session.transaction(() => transaction(tag), mode);
  await work(Object.assign(templateTag(run), { begin }) as unknown as Sql);
  return asked;
}

const filter = {
  scope: onlyKey(keyId),
  usageId: null,
  keyId,
  serviceId: null,
  fromMs: null,
  toMs: null,
  outcome: null,
  tag: null,
};
const hour = 3_600_000;
const PAGES: Record<string, (sql: Sql) => Promise<unknown>> = {
  'GET /usage/me': (sql) => selectUsage(sql, filter, null, 101),
  '… with times within hours': (sql) =>
    selectUsage(sql, { ...filter, fromMs: todayMs - 900 * DAY_MS + hour / 2, toMs: todayMs - hour / 3 }, null, 101),
  '… from a day on': (sql) => selectUsage(sql, { ...filter, fromMs: todayMs - 900 * DAY_MS }, null, 101),
  '… from the year 1 on': (sql) => selectUsage(sql, { ...filter, fromMs: Date.parse('0001-01-01') }, null, 101),
  '… up to a day, next page': (sql) =>
    selectUsage(sql, { ...filter, toMs: todayMs - 700 * DAY_MS }, uuidv7(todayMs - 750 * DAY_MS), 101),
  '… refunded': (sql) => selectUsage(sql, { ...filter, outcome: 'refunded' }, null, 101),
  '… of a tag, with times within hours': (sql) =>
    selectUsage(
      sql,
      {
        ...filter,
        scope: { kind: 'account', accountId },
        tag: 'a',
        fromMs: todayMs - 900 * DAY_MS + hour / 2,
        toMs: todayMs - hour / 3,
      },
      null,
      101,
    ),
  '… of the tag other': (sql) =>
    selectUsage(sql, { ...filter, scope: { kind: 'account', accountId }, tag: 'other' }, null, 101),
  '… as CSV': (sql) => selectCallPage(sql, filter, null, 10_001),
  '… of a key without calls': (sql) => selectUsage(sql, { ...filter, scope: onlyKey('acf_none') }, null, 101),
  'GET /usage': (sql) => selectUsage(sql, { ...filter, scope: { kind: 'account', accountId } }, null, 101),
  'GET /keys/me': (sql) => selectKeyActivity(sql, keyId),
  'GET /usage/{id}': (sql) => selectCall(sql, uuidv7(todayMs - 500 * DAY_MS)),
  'GET /services/{id}/calls': (sql) => selectServiceCalls(sql, { ...filter, serviceId }, null, 100),
  'GET /admin/calls': (sql) =>
    sql.begin((tx) =>
      selectAllCalls(
        async () => tx,
        { ...filter, fromMs: todayMs - 3 * DAY_MS, toMs: todayMs + DAY_MS, accountId, providerId: null },
        null,
        100,
      ),
    ),
  'GET /statement/me': (sql) =>
    selectStatement(sql, { accountId, ledger: 'wallet', fromMs: null, toMs: null, before: null, limit: 100 }),
};

it.each(Object.entries(PAGES))(
  '%s reads only a few of the partitions, even once its plan is cached',
  async (name, page) => {
    const session = new PostgresSession({ url, applicationName: 'test' });
    try {
      const asked = await queriesOf(session, page);
      expect(asked.some(([text]) => /FROM calls\b/.test(text))).toBe(true);
      expect(asked.length).toBeLessThan(MOST_QUERIES + (MORE.get(name) ?? 0));
      const times: string[] = [];
      let most = 0;
      for (const query of asked) {
        const [explained] = await session.query(`EXPLAIN (SUMMARY, FORMAT JSON) ${query[0]}`, query[1]);
        let slowestMs = 0;
        for (let i = 0; i < TIMES; i++) {
          const { locks, ms } = await execute(session, query);
          most = Math.max(most, locks);
          slowestMs = Math.max(slowestMs, ms);
        }
        times.push(`${explained?.['QUERY PLAN'][0]['Planning Time'].toFixed(1)} (${slowestMs.toFixed(0)})`);
      }
      if (process.env.PLANNING_TIMES)
        console.log(
          `${name}: at most ${most} locks; ms of planning (of the slowest of ${TIMES} executions): ${times.join(', ')}`,
        );
      expect(most).toBeLessThan(MOST_LOCKS);
    } finally {
      session.close();
    }
  },
);

const GIVE_BACK = new Error('give the locks back');
/** @returns how many locks the transaction has after this query */
async function execute(session: PostgresSession, query: Asked): Promise<{ locks: number; ms: number }> {
  const measured = { locks: 0, ms: 0 };
  const work = session.transaction(async () => {
    const startedAt = performance.now();
    await session.query(...query);
    measured.ms = performance.now() - startedAt;
    const [row] = await session.query<{ n: number }>(
      'SELECT count(*)::int AS n FROM pg_locks WHERE pid = pg_backend_pid()',
    );
    measured.locks = row?.n as number;
    throw GIVE_BACK;
  });
  await expect(work).rejects.toBe(GIVE_BACK);
  return measured;
}
