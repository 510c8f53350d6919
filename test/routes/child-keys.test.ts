import { beforeEach, describe, expect, it } from 'vitest';
import { readAllowance } from '../../src/accounts/allowance.ts';
import { selectKeyActivity } from '../../src/accounts/usage-sums.ts';
import { periodAt } from '../../src/keys/budget-period.ts';
import { type KeyRecord, ROLES } from '../../src/keys/caller.ts';
import { BudgetRefusals } from '../../src/keys/children/budget-refusals.ts';
import { Keys } from '../../src/keys/keys.ts';
import { selectKeyRecords } from '../../src/keys/keys-sql.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { keysRoutes } from '../../src/routes/keys.ts';
import { addAccount, addCall, json, send } from '../support/accounts.ts';
import { emptyDatabase } from '../support/empty-database.ts';
import { sql, useDatabase } from '../support/use-database.ts';

const DAY_MS = 86_400_000;

let published: string[];
let root: KeyRecord;
let routes: ReturnType<typeof keysRoutes>;

useDatabase();

beforeEach(async () => {
  await emptyDatabase(sql);
  published = [];
  const state = { put: async (keyId: string) => void published.push(keyId) };
  const keys = new Keys({ sql, state, maxRateLimit: 300, cache: { invalidate: () => {} } });
  const readActivity = (keyId: string) => selectKeyActivity(sql, keyId);
  routes = keysRoutes({ keys, readActivity, adminBootstrapToken: null, maxAccountsPerAddress: 0, maxRateLimit: 300 });
  root = await addAccount(sql);
});

async function recordOf(keyId: string): Promise<KeyRecord> {
  const [record] = await selectKeyRecords(sql, [keyId], 300);
  if (record === undefined) throw new Error(`no key ${keyId}`);
  return record;
}

const dayIn = (days: number): string => new Date(Date.now() + days * DAY_MS).toISOString().slice(0, 10);

it('an account with its eighth key has sums by key from a day on that no stored call has reached', async () => {
  const summedFrom = async ({ accountId }: KeyRecord): Promise<string | null> => {
    const rows = await sql<
      { day: string | null }[]
    >`SELECT summed_from::text AS day FROM accounts WHERE id = ${accountId}`;
    return rows[0]?.day ?? null;
  };
  // Redis's clock, which gives calls their times, is ahead of that of Postgres.
  const ahead = await addAccount(sql);
  await addCall(sql, { buyer: ahead, serviceId: uuidv7(), atMs: Date.now() + 5 * DAY_MS });
  for (let keys = 2; keys <= 7; keys++) for (const by of [root, ahead]) await create(by);
  expect([await summedFrom(root), await summedFrom(ahead)]).toEqual([null, null]);
  const before = dayIn(2);
  for (const by of [root, ahead]) await create(by, { role: 'buyer' });
  expect([before, dayIn(2)]).toContain(await summedFrom(root));
  expect([dayIn(7), dayIn(6)]).toContain(await summedFrom(ahead));
  const first = await summedFrom(root);
  await create(root);
  expect(await summedFrom(root)).toBe(first);
});

const create = (by: KeyRecord, body: Record<string, unknown> = {}) => send(routes, 'POST /keys', { body, by });
const makeChild = async (by: KeyRecord, body: Record<string, unknown> = {}): Promise<KeyRecord> =>
  recordOf(json(await create(by, body)).key_id);
const patch = (by: KeyRecord, { keyId }: KeyRecord, body: Record<string, unknown>) =>
  send(routes, 'PATCH /keys/:key_id', { by, params: { key_id: keyId }, body });
const listed = async (by: KeyRecord): Promise<Record<string, unknown>[]> =>
  json(await send(routes, 'GET /keys', { by, query: {} })).keys;

describe('POST /keys with a key and without a role', () => {
  it('makes a child of the key, with the limits that the request states and the rate limit of the parent', async () => {
    const expires_at = '2099-01-01T00:00:00.000Z';
    const limits = { label: 'researcher', budget: { amount: 0.5, period: 'day' }, max_price: 0.002, expires_at };
    const child = json(await create(root, limits));
    expect(child).toMatchObject({
      ...{
        role: 'buyer',
        rate_limit: 60,
        label: 'researcher',
        parent_key_id: root.keyId,
        max_price: 0.002,
        expires_at,
      },
      budget: {
        amount: 0.5,
        period: 'day',
        spent: 0,
        remaining: 0.5,
        resets_at: expect.stringMatching(/T00:00:00.000Z$/),
      },
    });
    expect(child).not.toHaveProperty('services');
    expect(await recordOf(child.key_id)).toMatchObject({
      ancestors: [root.keyId],
      maxPriceMicros: 2_000,
      services: null,
    });
  });

  it('makes trees of at most four levels', async () => {
    let key = root;
    for (let level = 2; level <= 4; level++) key = await makeChild(key);
    expect(key.ancestors).toHaveLength(3);
    await expect(create(key)).rejects.toMatchObject({ code: 'conflict' });
  });

  it('makes at most 100 keys below a child key, so that an agent cannot use up the keys of its account', async () => {
    const child = await makeChild(root);
    await sql`
      INSERT INTO api_keys (key_id, account_id, role, secret_hash, ancestors)
      SELECT 'acf_' || lpad(n::text, 22, '0'), ${root.accountId}, 'buyer', repeat('0', 64), ${[root.keyId, child.keyId]}::text[]
      FROM generate_series(1, 99) n`;
    const last = await makeChild(child);
    await expect(create(child)).rejects.toMatchObject({ code: 'conflict' });
    await send(routes, 'DELETE /keys/:key_id', { by: child, params: { key_id: last.keyId } });
    await expect(create(last)).rejects.toMatchObject({ code: 'unauthorized' });
    await expect(create(child)).rejects.toMatchObject({ code: 'conflict' });
    expect((await create(await makeChild(root))).status).toBe(201);
  });

  it.each([
    ['rate_limit', { rate_limit: 61 }],
    ['budget', { budget: { amount: 2, period: 'week' } }],
    ['max_price', { max_price: 0.02 }],
    ['expires_at', { expires_at: '2099-01-01T00:00:00Z' }],
    ['services', { services: ['019aa3f2-6b1c-7c3e-9f57-2f4b6d1e8a90'] }],
    ['budget.amount', { budget: { amount: 0.0000001, period: 'day' } }],
    ['role', { role: 'buyer' }, 'forbidden'],
  ])('refuses a %s that the parent key does not have', async (field, body, code = 'invalid_request') => {
    const limits = { budget: { amount: 1, period: 'month' }, max_price: 0.01, expires_at: '2098-01-01T00:00:00Z' };
    const parent = await makeChild(root, { ...limits, services: [] });
    const message = expect.stringContaining(code === 'forbidden' ? '' : `${field}: `);
    await expect(create(parent, body)).rejects.toMatchObject({ code, message });
  });

  it('gives the key the lowest maximum and the common services of all keys above it', async () => {
    const [a, b] = ['019aa3f2-6b1c-7c3e-9f57-2f4b6d1e8a90', '019aa3f2-6b1c-7c3e-9f57-2f4b6d1e8a91'];
    const upper = await makeChild(root, { max_price: 0.01 });
    const lower = await makeChild(upper, { max_price: 0.01 });
    const lowest = await makeChild(lower);
    await sql`UPDATE api_keys SET services = ${[a, b]}::uuid[], max_price = 5000 WHERE key_id = ${upper.keyId}`;
    await sql`UPDATE api_keys SET services = ${[b]}::uuid[] WHERE key_id = ${lower.keyId}`;
    expect(await recordOf(lowest.keyId)).toMatchObject({ maxPriceMicros: 5_000, services: new Set([b]) });
  });
});

describe('what a child key sees and changes', () => {
  it.each(ROLES)(
    'is limited to keys below it, and excludes a %s above and its siblings; it can only read itself',
    async (role) => {
      root = await addAccount(sql, role);
      const [child, sibling] = [await makeChild(root), await makeChild(root)];
      const below = await makeChild(child, { label: 'below' });
      const other = await addAccount(sql);
      expect(await listed(child)).toEqual([expect.objectContaining({ key_id: below.keyId, label: 'below' })]);
      expect((await listed(root)).map((key) => key.key_id).sort()).toEqual(
        [root, child, sibling, below].map(({ keyId }) => keyId).sort(),
      );
      const cursor = { by: child, query: { cursor: sibling.keyId } };
      await expect(send(routes, 'GET /keys', cursor)).rejects.toMatchObject({ code: 'invalid_request' });
      for (const [key, code] of [
        [child, 'forbidden'],
        ...[sibling, root, other].map((one) => [one, 'not_found'] as const),
      ] as const) {
        const params = { key_id: key.keyId };
        await expect(patch(child, key, { label: 'mine' })).rejects.toMatchObject({ code });
        await expect(send(routes, 'DELETE /keys/:key_id', { by: child, params })).rejects.toMatchObject({ code });
        await expect(send(routes, 'POST /keys/:key_id/rotate', { by: child, params, body: {} })).rejects.toMatchObject({
          code,
        });
      }
      expect(json(await patch(child, below, { label: 'renamed' })).label).toBe('renamed');
    },
  );

  it('excludes limits, which only the keys above and admins change; anyone who manages a key changes its label', async () => {
    const child = await makeChild(root);
    const beside = await recordOf(json(await create(root, { role: 'buyer' })).key_id);
    expect(json(await patch(beside, child, { label: 'seen' })).label).toBe('seen');
    await expect(patch(beside, child, { max_price: 1 })).rejects.toMatchObject({ code: 'forbidden' });
    expect(json(await patch(root, child, { max_price: 1 })).max_price).toBe(1);
    expect(json(await patch(await addAccount(sql, 'admin'), child, { max_price: null }))).not.toHaveProperty(
      'max_price',
    );
    const admin = await addAccount(sql, 'admin');
    await expect(patch(admin, root, { budget: null })).rejects.toMatchObject({ code: 'invalid_request' });
  });
});

describe('what a child key can spend', () => {
  it('is not answered if Postgres does not have the key, because the answer would be the money of the whole account', async () => {
    const child = await makeChild(root, { budget: { amount: 1, period: 'total' } });
    const parts = { balanceMicros: 5_000_000, heldMicros: 0, nowMs: Date.now() };
    let spentMicros = 300_000;
    const wallets = {
      read: () => Promise.reject(new Error('the whole account')),
      readParts: async (_: string, holders: readonly string[], budgets: readonly string[]) => {
        expect([holders, budgets]).toEqual([[child.keyId], [child.keyId]]);
        return { ...parts, budgets: [{ spentMicros, period: 0 }] };
      },
    };
    expect(await readAllowance({ sql, wallets }, child)).toMatchObject({ balanceMicros: 700_000, heldMicros: 0 });
    spentMicros = -50;
    expect(await readAllowance({ sql, wallets }, child)).toMatchObject({ balanceMicros: 1_000_000, heldMicros: 0 });
    await sql`DELETE FROM api_keys WHERE key_id = ${child.keyId}`;
    await expect(readAllowance({ sql, wallets }, child)).rejects.toMatchObject({ code: 'unauthorized' });
  });
});

describe('budgets', () => {
  it('keep their period, and count from 0 when they are set again', async () => {
    const child = await makeChild(root, { budget: { amount: 1, period: 'day' } });
    const present = (number: number): number => periodAt('day', number, Date.now());
    const spend = (period: number, micros: number) => sql`
      INSERT INTO budget_usage (account_id, key_id, period, spent)
      VALUES (${root.accountId}, ${child.keyId}, ${period}, ${micros})`;
    await spend(present(0) - 1, 900_000);
    expect(json(await patch(root, child, { budget: { amount: 2 } })).budget).toMatchObject({ amount: 2, spent: 0 });
    await spend(present(0), 300_000);
    expect((await listed(root)).find(({ key_id }) => key_id === child.keyId)?.budget).toMatchObject({
      ...{ amount: 2, period: 'day', spent: 0.3, remaining: 1.7 },
    });
    await expect(patch(root, child, { budget: { amount: 1, period: 'week' } })).rejects.toMatchObject({
      code: 'conflict',
    });
    expect(json(await patch(root, child, { budget: null }))).not.toHaveProperty('budget');
    await expect(patch(root, child, { budget: { amount: 1 } })).rejects.toMatchObject({ code: 'invalid_request' });
    const anew = json(await patch(root, child, { budget: { amount: 1, period: 'day' } }));
    expect(anew.budget).toMatchObject({ amount: 1, spent: 0, remaining: 1 });
    expect(published.every((keyId) => keyId === child.keyId)).toBe(true);
  });

  it('say how many calls they have refused in the current period', async () => {
    const child = await makeChild(root, { budget: { amount: 1, period: 'day' } });
    const whole = await makeChild(root, { budget: { amount: 1, period: 'total' } });
    const tomorrow = Math.ceil((Date.now() + 1) / DAY_MS) * DAY_MS;
    const warnings: object[] = [];
    const log = { warn: (fields: object) => void warnings.push(fields), info: () => {} };
    const store = async (counted: BudgetRefusals): Promise<unknown[]> => {
      await counted.stop();
      const keys = await listed(root);
      return [child, whole].map(({ keyId }) => keys.find(({ key_id }) => key_id === keyId)?.budget);
    };
    const gateways = [new BudgetRefusals({ sql, log }), new BudgetRefusals({ sql, log })] as const;
    for (const gateway of gateways) {
      gateway.count({ keyId: child.keyId, resetsAtMs: tomorrow - DAY_MS });
      gateway.count({ keyId: whole.keyId, resetsAtMs: null });
    }
    expect(await store(gateways[0])).toMatchObject([{ refused: 0 }, { refused: 1 }]);
    for (let i = 0; i < 3; i++) gateways[0].count({ keyId: child.keyId, resetsAtMs: tomorrow });
    expect(await store(gateways[0])).toMatchObject([{ refused: 3 }, { refused: 1 }]);
    // What another gateway counted of the period before changes nothing.
    expect(await store(gateways[1])).toMatchObject([{ refused: 3 }, { refused: 2 }]);

    // While Postgres is away they wait.
    await sql`ALTER TABLE budget_refusals RENAME TO away`;
    gateways[1].count({ keyId: child.keyId, resetsAtMs: tomorrow });
    await gateways[1].stop();
    await sql`ALTER TABLE away RENAME TO budget_refusals`;
    expect(warnings).toEqual([expect.objectContaining({ waiting: 1 })]);
    expect(await store(gateways[1])).toMatchObject([{ refused: 4 }, { refused: 2 }]);

    await patch(root, whole, { budget: null });
    gateways[1].count({ keyId: whole.keyId, resetsAtMs: null });
    await gateways[1].stop();
    await patch(root, whole, { budget: { amount: 1, period: 'total' } });
    expect(await store(gateways[1])).toMatchObject([{ refused: 4 }, { refused: 0 }]);
  });
});

describe('revoking', () => {
  it('a key revokes the keys below it, with one write to Redis', async () => {
    const child = await makeChild(root);
    const [below, beside] = [await makeChild(child), await makeChild(root)];
    await send(routes, 'DELETE /keys/:key_id', { by: root, params: { key_id: child.keyId } });
    expect(published).toEqual([child.keyId]);
    const states = await sql`SELECT key_id, status FROM api_keys WHERE account_id = ${root.accountId}`;
    expect(Object.fromEntries(states.map(({ key_id, status }) => [key_id, status]))).toEqual({
      [root.keyId]: 'active',
      [child.keyId]: 'revoked',
      [below.keyId]: 'revoked',
      [beside.keyId]: 'active',
    });
    await expect(create(child)).rejects.toMatchObject({ code: 'unauthorized' });
  });

  it('a key leaves no active child that was made at the same moment', async () => {
    for (let i = 0; i < 10; i++) {
      const child = await makeChild(root);
      const below = await makeChild(child);
      const ended = await Promise.allSettled([
        create(below),
        create(child),
        send(routes, 'DELETE /keys/:key_id', { by: root, params: { key_id: child.keyId } }),
        create(below),
        patch(root, below, { label: 'x' }),
      ]);
      // None waits for another that waits for it: they are refused because the key is revoked, or not at all.
      for (const { reason } of ended.filter((end) => end.status === 'rejected')) {
        expect(reason).toMatchObject({ code: 'unauthorized' });
      }
    }
    const active = await sql`SELECT key_id FROM api_keys WHERE status = 'active' AND cardinality(ancestors) > 0`;
    expect(active).toEqual([]);
  });
});
