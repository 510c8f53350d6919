import fc from 'fast-check';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Route } from '../../src/http/route.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import type { MoneyTx } from '../../src/ledger/history/fence.ts';
import { insertJournal, PLATFORM_ACCOUNT_ID, postEntries } from '../../src/ledger/posting.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { statementRoutes } from '../../src/routes/statement.ts';
import { sumUp } from '../ledger/rollups/sums-oracle.ts';
import { addAccount, addKeyTo, addService, findRoute, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { unfenced } from '../support/unfenced.ts';
import { sql, useDatabase } from '../support/use-database.ts';

let routes: Route[];
let buyer: KeyRecord;
let provider: KeyRecord;
let services: string[];
let live: { balanceMicros: number; heldMicros: number } | null;
let isAway = false;

useDatabase();
beforeAll(() => {
  routes = statementRoutes({
    sql,
    wallets: {
      read: async () => {
        if (isAway) throw new Error('away');
        return live ?? { balanceMicros: await settled(), heldMicros: 0 };
      },
    },
  });
});
beforeEach(reset);

async function reset(): Promise<void> {
  await emptyDatabase(sql);
  [buyer, provider] = [await addAccount(sql, 'buyer'), await addAccount(sql, 'provider')];
  services = [await addService(sql, provider.accountId, 'maps'), await addService(sql, provider.accountId, 'weather')];
  live = null;
}

async function settled(): Promise<number> {
  const rows = await sql<{ balance: number }[]>`
    SELECT balance FROM balances WHERE account_id = ${buyer.accountId} AND ledger = 'wallet'`;
  return rows[0]?.balance ?? 0;
}

/** Posts to one ledger of an account, with the rest on the platform's side. */
async function post(
  tx: MoneyTx,
  kind: 'credit' | 'debit' | 'correction' | 'payout',
  accountId: string,
  amountMicros: number,
): Promise<number> {
  const id = await insertJournal(tx, kind, uuidv7());
  const ledger = kind === 'payout' ? 'earnings' : 'wallet';
  await postEntries(tx, id, [
    { accountId, ledger, amountMicros },
    { accountId: PLATFORM_ACCOUNT_ID, ledger: 'cash', amountMicros: -amountMicros },
  ]);
  return id;
}

let seq = 0;
const moves = {
  credit: (atMs: number, micros: number) =>
    unfenced(sql).begin([], async (tx) => {
      const id = await post(tx, 'credit', buyer.accountId, micros);
      await tx`INSERT INTO credits VALUES (${buyer.accountId}, ${++seq}, ${micros}, ${`c${id}`}, ${id}, ${new Date(atMs)})`;
    }),
  debit: (atMs: number, micros: number) =>
    unfenced(sql).begin([], async (tx) => {
      const id = await post(tx, 'debit', buyer.accountId, -micros);
      await tx`
        INSERT INTO debits (account_id, seq, amount, total_before, reference, reason, state, journal_id, ended_at, act_id)
        VALUES (${buyer.accountId}, ${++seq}, ${micros}, 0, ${`d${id}`}, 'paid twice', 'taken', ${id}, ${new Date(atMs)}, 0)`;
    }),
  /** The amount is positive or negative: an even size takes money, an odd one adds it. */
  correction: (atMs: number, size: number) =>
    unfenced(sql).begin([], async (tx) => {
      const drift = size % 2 === 0 ? -size : size;
      const id = await post(tx, 'correction', buyer.accountId, drift);
      await tx`
        INSERT INTO corrections VALUES (${`x${id}`}, ${buyer.accountId}, 'redis', 'redis was right', 'admin', ${drift}, '[]', '[]', 0,
          ${id}, NULL, ${new Date(atMs)})`;
    }),
  payout: (atMs: number, micros: number) =>
    unfenced(sql).begin([], async (tx) => {
      const id = await post(tx, 'payout', provider.accountId, -micros);
      await tx`INSERT INTO payouts VALUES (${id}, ${provider.accountId}, ${micros}, ${`p${id}`}, ${new Date(atMs)})`;
    }),
  refund: (atMs: number, micros: number, service = 0) =>
    unfenced(sql).begin([], async (tx) => {
      const [serviceId, fee] = [services[service] as string, Math.floor(micros / 10)];
      const id = await insertJournal(tx, 'refund', uuidv7());
      const entries = [
        { accountId: buyer.accountId, ledger: 'wallet', amountMicros: micros },
        { accountId: provider.accountId, ledger: 'earnings', amountMicros: fee - micros },
        { accountId: PLATFORM_ACCOUNT_ID, ledger: 'fees', amountMicros: -fee },
      ] as const;
      await postEntries(tx, id, entries);
      const at = new Date(atMs);
      await tx`
        INSERT INTO credits (account_id, seq, amount, journal_id, created_at)
        VALUES (${buyer.accountId}, ${++seq}, ${micros}, ${id}, ${at})`;
      await tx`
        INSERT INTO refunds VALUES (${id}, ${uuidv7()}, ${buyer.accountId}, ${seq}, ${provider.accountId}, ${serviceId}, 'key',
          ${at}, true, ${micros}, ${fee}, 0, 0, true, 'cut off', ${provider.accountId}, ${`r${id}`}, ${at})`;
    }),
  call: (atMs: number, micros: number, service = 0, keyId = buyer.keyId) =>
    sql.begin(async (tx) => {
      const [serviceId, fee] = [services[service] as string, Math.floor(micros / 10)];
      await tx`
        INSERT INTO calls VALUES (${new Date(atMs)}::timestamptz::date, ${uuidv7(atMs)}, ${buyer.accountId}, ${keyId},
          ${provider.accountId}, ${serviceId}, 'GET', '/', 200, ${micros}, ${fee}, false, 'completed', 1, 0, 0, ${new Date(atMs)}, 0)`;
      const amounts = [
        [buyer.accountId, 'wallet', -micros],
        [provider.accountId, 'earnings', micros - fee],
      ] as const;
      for (const [accountId, ledger, amount] of amounts) {
        await tx`
          INSERT INTO balances AS b VALUES (${accountId}, ${ledger}, ${amount})
          ON CONFLICT (account_id, ledger) DO UPDATE SET balance = b.balance + excluded.balance`;
      }
    }),
};

type Row = { at: string; kind: string; amount: number; balance: number; [more: string]: unknown };
type Page = { balance: number; movements: Row[]; next_cursor: string | null; ledger: string };

const ask = async (query: object = {}, by = buyer): Promise<Page> =>
  json(await send(routes, 'GET /statement/me', { by, query })) as unknown as Page;

async function all(query: object, by: KeyRecord): Promise<Row[]> {
  const rows: Row[] = [];
  for (let cursor: string | undefined; ; ) {
    const page = await ask({ ...query, ...(cursor && { cursor }) }, by);
    if (page.movements[0]) expect(page.balance).toBe(page.movements[0].balance);
    rows.push(...page.movements);
    if (page.next_cursor === null) return rows;
    cursor = page.next_cursor;
  }
}

const HOUR = 3_600_000;
const START = Date.parse('2026-03-01T00:00:00Z');
const micros = (usd: number): number => Math.round(usd * 1e6);

type Move = {
  readonly kind: keyof typeof moves;
  readonly at: number;
  readonly micros: number;
  readonly service: number;
};
const make = ({ kind, at, micros, service }: Move) => moves[kind](START + at, micros, service);

const move: fc.Arbitrary<Move> = fc.record({
  kind: fc.constantFrom<keyof typeof moves>('credit', 'debit', 'correction', 'payout', 'call', 'call', 'refund'),
  // Minutes within three hours, and the edges of hours.
  at: fc.oneof(
    fc.integer({ min: 0, max: 179 }).map((minute) => minute * 60_000),
    fc.constantFrom(HOUR, HOUR - 1, 2 * HOUR),
  ),
  micros: fc.oneof(fc.integer({ min: 1, max: 100_000 }), fc.constantFrom(1_000, 90_000)),
  service: fc.nat({ max: 1 }),
});

/** What a move adds to the buyer's wallet, and to the provider's earnings. */
function changesOf({ kind, micros: size }: Move): readonly [wallet: number, earnings: number] {
  const fee = Math.floor(size / 10);
  const changes: Record<Move['kind'], readonly [number, number]> = {
    credit: [size, 0],
    debit: [-size, 0],
    correction: [size % 2 === 0 ? -size : size, 0],
    payout: [0, -size],
    call: [-size, size - fee],
    refund: [size, fee - size],
  };
  return changes[kind];
}

/** Those moves that the account could pay for when they were made. Of several at one time, those come first that take money. */
function affordable<T extends Move>(list: readonly T[]): T[] {
  let [wallet, earned] = [0, 0];
  const takes = ({ kind }: Move): number => (kind === 'credit' || kind === 'call' ? 1 : 0);
  const inOrder = list.toSorted((a, b) => a.at - b.at || takes(a) - takes(b));
  return inOrder.filter((move) => {
    const change = changesOf(move);
    if (wallet + change[0] < 0 || earned + change[1] < 0) return false;
    wallet += change[0];
    earned += change[1];
    return true;
  });
}

describe('GET /statement/me', () => {
  it('shows credits, charges by hour and service, and debits, and ends at balance + held', async () => {
    await moves.credit(START + 3 * 60_000, 10_000_000);
    await moves.call(START + 5 * 60_000, 2_000, 0);
    const other = await addKeyTo(sql, buyer.accountId, 'buyer');
    await moves.call(START + 50 * 60_000, 3_000, 0, other.keyId);
    await moves.call(START + 50 * 60_000, 500, 1);
    await moves.debit(START + HOUR, 1_000_000);
    await sumUp(sql);
    live = { balanceMicros: 8_994_000, heldMicros: 300 };
    const { movements, ...rest } = await ask();
    expect(rest).toEqual({
      owner_id: buyer.ownerId,
      ledger: 'wallet',
      balance: 8.9943,
      currency: 'USD',
      next_cursor: null,
    });
    const [maps, weather] = services;
    const [first, last] = ['2026-03-01T00:05:00.000Z', '2026-03-01T00:50:00.000Z'];
    expect(movements).toEqual([
      { at: expect.any(String), kind: 'pending', amount: -0.0002, balance: 8.9943 },
      {
        at: '2026-03-01T01:00:00.000Z',
        kind: 'debit',
        amount: -1,
        balance: 8.9945,
        reference: expect.stringMatching(/^d/),
        reason: 'paid twice',
      },
      {
        at: last,
        kind: 'charge',
        amount: -0.0005,
        balance: 9.9945,
        from: last,
        calls: 1,
        service_id: weather,
        service_name: 'weather',
      },
      {
        at: last,
        kind: 'charge',
        amount: -0.005,
        balance: 9.995,
        from: first,
        calls: 2,
        service_id: maps,
        service_name: 'maps',
      },
      {
        at: '2026-03-01T00:03:00.000Z',
        kind: 'credit',
        amount: 10,
        balance: 10,
        reference: expect.stringMatching(/^c/),
      },
    ]);
  });

  it('shows a provider what buyers paid, the fees and the payouts, and ends at what is payable', async () => {
    await moves.call(START, 2_000, 0);
    await moves.call(START + 1, 3, 1);
    // Within the hour: what is paid out was earned before.
    await moves.payout(START + 1000, 1_500);
    await sumUp(sql);
    const { movements, ledger, balance } = await ask({}, provider);
    expect([ledger, balance]).toEqual(['earnings', 0.000303]);
    expect(movements.map(({ kind, amount, balance }) => [kind, amount, balance])).toEqual([
      ['payout', -0.0015, 0.000303],
      ['earning', 0.000003, 0.001803],
      ['fee', -0.0002, 0.0018],
      ['earning', 0.002, 0.002],
    ]);
  });

  it('is live if its range has not ended, and no row is in the future', async () => {
    await moves.credit(START, 10_000_000);
    const calledAt = Date.now();
    await moves.call(calledAt, 2_000);
    await sumUp(sql);
    live = { balanceMicros: 9_000_000, heldMicros: 0 };
    const kinds = async (toMs: number) => {
      const { movements } = await ask({ to: new Date(toMs).toISOString() });
      for (const { at } of movements) expect(Date.parse(at)).toBeLessThanOrEqual(Date.now());
      return movements.map(({ kind, balance }) => [kind, balance]);
    };
    expect(await kinds(calledAt)).toEqual([['credit', 10]]);
    expect(await kinds(calledAt + HOUR)).toEqual([
      ['pending', 9],
      ['charge', 9.998],
      ['credit', 10],
    ]);
  });

  it('dates sums of calls at the last call of the hour, with the balance at that time', async () => {
    const minute = (n: number): number => START + n * 60_000;
    const seen = new Map<string, number>();
    let balance = 0;
    /** What the account has after each act; of calls of one hour to one service the last one counts. */
    const see = async (ms: number, act: () => Promise<unknown>, change: number) => {
      await act();
      balance += change;
      seen.set(new Date(ms).toISOString(), balance);
    };
    await see(minute(1), () => moves.credit(minute(1), 10_000), 10_000);
    for (const n of [2, 3]) await see(minute(n), () => moves.call(minute(n), 3_000, 0), -3_000);
    for (const n of [4, 9]) await see(minute(n), () => moves.call(minute(n), 1_000, 1), -1_000);
    await see(minute(61), () => moves.call(minute(61), 500, 0), -500);
    await sumUp(sql);
    const { movements } = await ask();
    expect(movements.map(({ kind, from, at }) => [kind, from, at])).toEqual([
      ['charge', new Date(minute(61)).toISOString(), new Date(minute(61)).toISOString()],
      ['charge', new Date(minute(4)).toISOString(), new Date(minute(9)).toISOString()],
      ['charge', new Date(minute(2)).toISOString(), new Date(minute(3)).toISOString()],
      ['credit', undefined, new Date(minute(1)).toISOString()],
    ]);
    for (const { at, balance: shown } of movements) expect(micros(shown)).toBe(seen.get(at));
  });

  it('counts charged and free calls of all keys, and no failed ones, for the buyer as for the provider', async () => {
    const minute = (n: number): number => START + n * 60_000;
    const times = (...minutes: number[]) => minutes.map((n) => new Date(minute(n)).toISOString());
    const [other, third] = [
      await addKeyTo(sql, buyer.accountId, 'buyer'),
      await addKeyTo(sql, buyer.accountId, 'buyer'),
    ];
    await moves.credit(START, 10_000);
    for (const n of [1, 61]) await moves.call(minute(n), 2_000);
    for (const n of [2, 3, 62, 63, 130]) await moves.call(minute(n), 0, 0, n % 2 ? other.keyId : third.keyId);
    await sql`UPDATE calls SET outcome = 'refunded:upstream_5xx', status = 500 WHERE created_at = ANY(${times(2, 62)}::timestamptz[])`;
    await sql`UPDATE calls SET free_tier = true WHERE created_at = ANY(${times(3, 63, 130)}::timestamptz[])`;
    await moves.credit(minute(4), 10_000);
    await moves.call(minute(5), 1_000);
    await sumUp(sql);
    const counts = async (kind: string, by: KeyRecord) =>
      (await all({}, by)).filter((row) => row.kind === kind).map(({ calls, amount }) => [calls, Math.abs(amount)]);
    // The credit divides the first hour. The third hour has a free call only, so no money has moved.
    expect(await counts('charge', buyer)).toEqual([
      [2, 0.002],
      [1, 0.001],
      [2, 0.002],
    ]);
    expect(await counts('earning', provider)).toEqual([
      [2, 0.002],
      [3, 0.003],
    ]);
  });

  it('divides a sum of calls where money came in between, unless its calls are no longer kept one by one', async () => {
    const second = (n: number): number => START + n * 1_000;
    await moves.credit(second(1), 20_000);
    for (const n of [2, 3]) await moves.call(second(n), 3_000);
    await moves.credit(second(4), 1_000_000);
    for (const n of [5, 6, 7]) await moves.call(second(n), 2_000);
    await sumUp(sql);
    const shown = async () =>
      (await ask()).movements.map(({ at, from, kind, balance }) => [
        from === undefined ? null : (Date.parse(String(from)) - START) / 1_000,
        (Date.parse(at) - START) / 1_000,
        kind,
        balance,
      ]);
    const credits = [
      [null, 4, 'credit', 1.014],
      [null, 1, 'credit', 0.02],
    ] as const;
    expect(await shown()).toEqual([[5, 7, 'charge', 1.008], credits[0], [2, 3, 'charge', 0.014], credits[1]]);
    await sql`DELETE FROM calls WHERE created_at = ${new Date(second(2))}`;
    expect(await shown()).toEqual([[2, 7, 'charge', 1.008], [null, 4, 'credit', 1.02], credits[1]]);
  });

  it('divides earnings where they were paid out or refunded; without the calls they come before that', async () => {
    const second = (n: number): number => START + n * 1_000;
    await moves.call(second(1), 2_000, 0);
    await moves.payout(second(2), 1_500);
    await moves.payout(second(3), 300);
    await moves.call(second(4), 100, 0);
    await moves.call(second(5), 1_000, 1);
    await moves.refund(second(6), 500, 1);
    await moves.call(second(7), 50, 1);
    await sumUp(sql);
    const shown = async () =>
      (await ask({}, provider)).movements.map(({ at, kind, balance }) => [
        (Date.parse(at) - START) / 1_000,
        kind,
        balance,
      ]);
    expect(await shown()).toEqual([
      [7, 'fee', 0.000585],
      [7, 'earning', 0.00059],
      [6, 'refund', 0.00054],
      [6, 'fee', 0.00104],
      [5, 'fee', 0.00099],
      [5, 'earning', 0.00109],
      [4, 'fee', 0.00009],
      [4, 'earning', 0.0001],
      [3, 'payout', 0],
      [2, 'payout', 0.0003],
      [1, 'fee', 0.0018],
      [1, 'earning', 0.002],
    ]);
    await sql`TRUNCATE calls`;
    expect(await shown()).toEqual([
      [6, 'refund', 0.000585],
      [6, 'fee', 0.001085],
      [6, 'fee', 0.001035],
      [6, 'earning', 0.00114],
      [3, 'payout', 0.00009],
      [2, 'payout', 0.00039],
      [2, 'fee', 0.00189],
      [2, 'earning', 0.0021],
    ]);
  });

  it('exports CSV, and says where the next file begins', async () => {
    for (let i = 0; i < 3; i++) await moves.credit(START + HOUR * i, 1_000_000);
    const response = await send(routes, 'GET /statement/me', {
      by: buyer,
      query: { limit: 2 },
      headers: { accept: 'text/csv' },
    });
    expect(String(response.body).split('\r\n').slice(0, 2)).toEqual([
      'at,kind,amount,balance,from,calls,service_id,service_name,reference,reason,usage_id',
      expect.stringMatching(/^2026-03-01T02:00:00.000Z,credit,1,3,,,,,c\d+,,$/),
    ]);
    const cursor = response.headers?.['X-ACF-Next-Cursor'];
    expect((await ask({ cursor })).movements).toMatchObject([{ amount: 1, balance: 1 }]);
  });

  it('shows an operator exactly what the account sees, or the books alone if there is no wallet', async () => {
    const admin = await addAccount(sql, 'admin');
    const shown = async ({ accountId: id }: KeyRecord, query: object = {}) =>
      json(await send(routes, 'GET /admin/accounts/:id/statement', { by: admin, params: { id }, query }));
    await moves.credit(START - HOUR, 10_000_000);
    await moves.call(START, 2_000);
    await moves.payout(START + HOUR, 1_000);
    await sumUp(sql);
    live = { balanceMicros: 9_000_000, heldMicros: 300 };
    const own = await ask();
    expect(own.movements.map(({ kind }) => kind)).toEqual(['pending', 'charge', 'credit']);
    // The pending row is dated at the present moment.
    const timeless = (page: unknown) => ({
      ...(page as Page),
      movements: (page as Page).movements.map(({ at: _, ...row }) => row),
    });
    expect(timeless(await shown(buyer))).toEqual(timeless(own));
    expect(await shown(buyer, { limit: 1 })).toHaveProperty('next_cursor', `${START * 1_000}-`);
    expect((await ask({ limit: 1 })).next_cursor).toBe(`${START * 1_000}-`);
    expect(await shown(provider, { ledger: 'earnings' })).toEqual(await ask({}, provider));
    isAway = true;
    await expect(ask()).rejects.toThrow('away');
    expect((await shown(buyer)).movements).toMatchObject([{ kind: 'charge' }, { kind: 'credit' }]);
    isAway = false;
    await sql`UPDATE accounts SET status = 'closed' WHERE id = ${buyer.accountId}`;
    expect((await shown(buyer)).movements).toMatchObject([{ kind: 'charge' }, { kind: 'credit' }]);
    for (const accountId of [uuidv7(), 'nobody']) {
      await expect(shown({ ...buyer, accountId })).rejects.toMatchObject({ code: 'not_found' });
    }
  });

  it('refuses earnings to a buyer key, and a cursor of another list', async () => {
    await expect(ask({ ledger: 'earnings' })).rejects.toMatchObject({ code: 'forbidden' });
    expect((await ask({ ledger: 'wallet' }, provider)).ledger).toBe('wallet');
    for (const cursor of ['x', '1-2', `99999999999999999-${'0'.repeat(16)}`]) {
      await expect(ask({ cursor })).rejects.toMatchObject({
        code: 'invalid_request',
        message: expect.stringMatching(/^cursor/),
      });
    }
    expect(findRoute(routes, 'GET /statement/me').access).toEqual(['buyer', 'provider', 'admin']);
  });

  it('has every movement once, in order, with the right balance, whatever the page size', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(move, { maxLength: 14 }),
        fc.boolean(),
        fc.integer({ min: 1, max: 5 }),
        fc.nat({ max: 12 }),
        async (moved, isSolvent, limit, bounds) => {
          await reset();
          const list = isSolvent ? affordable(moved) : moved;
          for (const one of list) await make(one);
          await sumUp(sql);
          for (const [by, ledger] of [
            [buyer, 'wallet'],
            [provider, 'earnings'],
          ] as const) {
            const rows = await all({ limit }, by);
            // Backwards from the end: each balance is the one before plus the amount.
            let balance = 0;
            for (const row of rows.toReversed()) {
              balance += micros(row.amount);
              expect(micros(row.balance)).toBe(balance);
            }
            const [stored] =
              await sql`SELECT balance FROM balances WHERE account_id = ${by.accountId} AND ledger = ${ledger}`;
            expect(balance).toBe(stored?.balance ?? 0);
            if (isSolvent) for (const row of rows) expect(row.balance).toBeGreaterThanOrEqual(0);
            // What the account had at that moment, whatever calls of the same hour came later.
            const had = (at: string): number =>
              list
                .filter((one) => START + one.at <= Date.parse(at))
                .reduce((sum, one) => sum + changesOf(one)[ledger === 'wallet' ? 0 : 1], 0);
            const beganAt = ({ at, from }: Row): string => String(from ?? at);
            rows.forEach((row, i) => {
              const newer = rows.slice(0, i);
              if (row.from === undefined) for (const one of newer) expect(beganAt(one) >= row.at).toBe(true);
              if (newer.every((one) => beganAt(one) > row.at)) expect(micros(row.balance)).toBe(had(row.at));
            });
            expect(rows.map(({ at }) => at)).toEqual(
              rows
                .map(({ at }) => at)
                .toSorted()
                .reverse(),
            );
            const named = rows.map((row) => [row.at, row.kind, row.reference ?? row.service_id].join());
            expect(new Set(named).size).toBe(rows.length);
            // A range is a part of the whole, with the same balances.
            const [from, to] = [START + Math.min(bounds, 6) * 20 * 60_000, START + (7 + bounds) * 20 * 60_000];
            const inRange = rows.filter(({ at }) => Date.parse(at) >= from && Date.parse(at) < to);
            const query = { from: new Date(from).toISOString(), to: new Date(to).toISOString(), limit };
            expect(await all(query, by)).toEqual(inRange);
          }
        },
      ),
      { numRuns: 10 },
    );
  });

  it('has every movement once, even if calls and money arrive between its pages, some in earlier hours', async () => {
    const nameOf = (row: Row): string => [row.at.slice(0, 13), row.kind, row.reference ?? row.service_id].join();
    const call = (minute: number, service: number): Move => ({
      kind: 'call',
      at: minute * 60_000,
      micros: 100,
      service,
    });
    // The older of two sums passes the newer one, which is on the first page.
    const passing = [call(1, 0), call(2, 1)];
    await fc.assert(
      fc.asyncProperty(
        fc.array(move, { minLength: 4, maxLength: 12 }),
        fc.array(move, { maxLength: 8 }),
        fc.integer({ min: 1, max: 3 }),
        fc.constantFrom(0, 1),
        async (first, arriving, limit, ledger) => {
          await reset();
          const by = ledger === 0 ? buyer : provider;
          const made: Move[] = [];
          const makeAll = async (list: readonly Move[]) => {
            for (const one of list) await make(one);
            made.push(...list);
            await sumUp(sql);
          };
          await makeAll(first);
          const atFirst = (await ask({}, by)).movements.map(nameOf);
          const left = [...arriving];
          const seen: string[] = [];
          for (let cursor: string | null = ''; cursor !== null; ) {
            const page: Page = await ask({ limit, ...(cursor !== '' && { cursor }) }, by);
            const until = cursor === '' ? Infinity : Number.parseInt(cursor, 10) / 1_000 - START;
            cursor = page.next_cursor;
            const from = cursor === null ? -Infinity : Number.parseInt(cursor, 10) / 1_000 - START;
            const sum = (list: readonly Move[]) => list.reduce((total, one) => total + changesOf(one)[ledger], 0);
            expect(micros(page.balance)).toBe(sum(made.filter(({ at }) => at < until)));
            const shown = page.movements.reduce((total, { amount }) => total + micros(amount), 0);
            expect(shown).toBe(sum(made.filter(({ at }) => at < until && at >= from)));
            // The parts of a divided sum have one name, and are on one page.
            seen.push(...new Set(page.movements.map(nameOf)));
            await makeAll(left.splice(0, 2));
          }
          expect(new Set(seen).size).toBe(seen.length);
          expect(seen).toEqual(expect.arrayContaining(atFirst));
        },
      ),
      { numRuns: 10, examples: [[passing, [call(3, 0)], 1, 0]] },
    );
  });

  it('splits pages only between hours, unless an hour has more than ten thousand movements', async () => {
    for (const minute of [1, 2, 3, 61, 121]) await moves.credit(START + minute * 60_000, 1_000);
    const sizes = async (limit: number): Promise<number[]> => {
      const found: number[] = [];
      for (let cursor: string | null = ''; cursor !== null; ) {
        const page: Page = await ask({ limit, ...(cursor !== '' && { cursor }) });
        found.push(page.movements.length);
        cursor = page.next_cursor;
      }
      return found;
    };
    expect(await sizes(1)).toEqual([1, 1, 3]);
    expect(await sizes(2)).toEqual([2, 3]);
    expect(await sizes(4)).toEqual([2, 3]);
    expect(await sizes(5)).toEqual([5]);
    await sql`
      INSERT INTO credits (account_id, seq, amount, reference, journal_id, created_at)
      SELECT account_id, 1000 + n, 1, 'many ' || n, 1000000 + n, created_at + n * interval '1 millisecond'
      FROM credits CROSS JOIN generate_series(1, 10000) AS n WHERE seq = (SELECT min(seq) FROM credits)`;
    expect(await sizes(2)).toEqual([2, 10_000, 3]);
  });
});
