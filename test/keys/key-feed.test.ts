import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { KeyCache } from '../../src/keys/key-cache.ts';
import { keepKeyCacheFresh } from '../../src/keys/key-feed.ts';
import { Keys } from '../../src/keys/keys.ts';
import { selectKeyRecords } from '../../src/keys/keys-sql.ts';
import { migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres, type Sql } from '../../src/platform/postgres.ts';
import { addAccount, addKeyTo, openTestDatabase } from '../support/accounts.ts';
import { startTestPostgres } from '../support/stores.ts';

/** The cache of one gateway, fed by Postgres, and the `Keys` of another gateway that changes keys. */
function gateway(sql: Sql): { cache: KeyCache; elsewhere: Keys } {
  const cache = new KeyCache({ fetchKeys: (keyIds) => selectKeyRecords(sql, keyIds, 300), refreshPauseMs: 50 });
  const elsewhere = new Keys({
    sql,
    state: { put: async () => {} },
    maxRateLimit: 300,
    cache: { invalidate: () => {} },
  });
  return { cache, elsewhere };
}

/** How long Postgres may take to pass a change on, on a busy machine: vitest's own second was not always enough. */
const SEEN_MS = 10_000;

const LISTENERS = `datname = current_database() AND query ILIKE 'listen%'`;

describe('a gateway', () => {
  let sql: Sql;
  let close: () => Promise<void>;
  let stop: () => void;
  let cache: KeyCache;
  let elsewhere: Keys;

  beforeAll(async () => {
    ({ sql, close } = await openTestDatabase());
  });
  afterAll(() => close());
  beforeEach(async () => {
    ({ cache, elsewhere } = gateway(sql));
    stop = await keepKeyCacheFresh(sql, cache);
  });
  afterEach(() => stop());

  it('sees every kind of change made on another gateway', async () => {
    const { keyId } = await addAccount(sql);
    const changes: [() => Promise<unknown>, (record: Awaited<ReturnType<KeyCache['load']>>) => boolean][] = [
      [() => elsewhere.change(keyId, { rateLimit: 7 }), (record) => record?.rateLimit === 7],
      [() => elsewhere.rotate(keyId, 60), (record) => (record?.previousExpiresAtMs ?? 0) > Date.now()],
      [() => elsewhere.revoke(keyId), (record) => record?.status === 'revoked'],
    ];
    for (const [change, isSeen] of changes) {
      expect(isSeen(await cache.load(keyId))).toBe(false);
      await change();
      await vi.waitFor(async () => expect(isSeen(await cache.load(keyId))).toBe(true), SEEN_MS);
    }
  });

  it('sees on all keys of an account that the account was suspended', async () => {
    const first = await addAccount(sql);
    const ids = [first.keyId, (await addKeyTo(sql, first.accountId, 'buyer')).keyId];
    for (const id of ids) await cache.load(id);
    await sql.begin(async (tx) => {
      await tx`UPDATE accounts SET status = 'suspended' WHERE id = ${first.accountId}`;
      await tx`SELECT pg_notify('tollgate_keys', ${`account:${first.accountId}`})`;
    });
    for (const id of ids) {
      await vi.waitFor(async () => expect((await cache.load(id))?.accountStatus).toBe('suspended'), SEEN_MS);
    }
  });

  it('catches up on the changes it missed while its connection was broken', async () => {
    const { keyId } = await addAccount(sql);
    await cache.load(keyId);
    // Changed without a message: only the reconnection can reveal it.
    await sql`UPDATE api_keys SET rate_limit = 11 WHERE key_id = ${keyId}`;
    expect(cache.get(keyId)?.rateLimit).toBe(60);
    const ended = await sql.unsafe(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE ${LISTENERS}`);
    expect(ended.length).toBeGreaterThan(0);
    await vi.waitFor(() => expect(cache.get(keyId)?.rateLimit).toBe(11), SEEN_MS);
    // The cache also listens again.
    await elsewhere.change(keyId, { rateLimit: 12 });
    await vi.waitFor(async () => expect((await cache.load(keyId))?.rateLimit).toBe(12), SEEN_MS);
  });

  it('rereads the keys in use from time to time, in case its connection is dead without an error', async () => {
    await stop();
    stop = await keepKeyCacheFresh(sql, cache, { revalidateMs: 30 });
    const { keyId } = await addAccount(sql);
    await cache.load(keyId);
    await sql`UPDATE api_keys SET rate_limit = 13 WHERE key_id = ${keyId}`;
    await vi.waitFor(() => expect(cache.get(keyId)?.rateLimit).toBe(13), SEEN_MS);
  });
});

it('while Postgres is stopped, known keys work and unknown ones are unavailable; afterwards all keys work as before', async () => {
  const store = await startTestPostgres();
  const sql = openPostgres({ url: store.url, maxConnections: 4, applicationName: 'test' });
  try {
    await migrate(sql, readMigrations('migrations'));
    const { cache, elsewhere } = gateway(sql);
    const stop = await keepKeyCacheFresh(sql, cache, { revalidateMs: 40 });
    const [known, unknown] = [await addAccount(sql), await addAccount(sql)];
    await cache.load(known.keyId);

    await store.stop();
    const until = Date.now() + 400;
    while (Date.now() < until) {
      expect((await cache.load(known.keyId))?.keyId).toBe(known.keyId);
      await expect(cache.load(unknown.keyId)).rejects.toMatchObject({ code: 'unavailable' });
    }

    await store.restart();
    await vi.waitFor(async () => expect((await cache.load(unknown.keyId))?.keyId).toBe(unknown.keyId), SEEN_MS);
    await vi.waitFor(async () => {
      const rows = await sql.unsafe(`SELECT 1 FROM pg_stat_activity WHERE ${LISTENERS}`);
      expect(rows.length).toBe(1);
    }, SEEN_MS);
    await elsewhere.change(known.keyId, { rateLimit: 14 });
    await vi.waitFor(async () => expect((await cache.load(known.keyId))?.rateLimit).toBe(14), SEEN_MS);
    await stop();
  } finally {
    await sql.end({ timeout: 1 });
    await store.stop();
  }
});
