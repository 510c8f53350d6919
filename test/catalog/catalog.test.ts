import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { Suspension } from '../../src/accounts/suspension.ts';
import { Catalog } from '../../src/catalog/catalog.ts';
import type { Listing } from '../../src/catalog/listing.ts';
import {
  announceListingsOf,
  insertListing,
  removeListing,
  selectBucketSums,
  updateListing,
} from '../../src/catalog/sql.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres, type Sql } from '../../src/platform/postgres.ts';
import { addAccount, addKeyTo, OPERATOR, openTestDatabase } from '../support/accounts.ts';
import { LISTING_FIELDS, within } from '../support/listings.ts';
import { startTestPostgres } from '../support/stores.ts';
import { until } from '../support/wait.ts';

class CapturedLog {
  readonly lines: { level: string; message: string }[] = [];
  warn = (_fields: object, message: string): void => void this.lines.push({ level: 'warn', message });
  error = (_fields: object, message: string): void => void this.lines.push({ level: 'error', message });
}

let open: Catalog[] = [];
afterEach(async () => {
  await Promise.all(open.map((catalog) => catalog.stop()));
  open = [];
});

function makeCatalog(sql: Sql, options: { rereadMs?: number; log?: CapturedLog } = {}): Catalog {
  const catalog = new Catalog({ log: new CapturedLog(), rereadMs: 3_600_000, retryMs: 50, ...options, sql });
  open.push(catalog);
  return catalog;
}

async function startedCatalog(sql: Sql, options: { rereadMs?: number; log?: CapturedLog } = {}): Promise<Catalog> {
  const catalog = makeCatalog(sql, options);
  await catalog.start();
  return catalog;
}

/** A database from which no message ever comes. */
function withoutMessages(sql: Sql): Sql {
  const listen = async ({ onListening }: { onListening: () => void }) => {
    onListening();
    return () => {};
  };
  return new Proxy(sql, { get: (target, name) => (name === 'listen' ? listen : Reflect.get(target, name)) });
}

describe('the catalog', () => {
  let sql: Sql;
  let close: () => Promise<void>;
  let providerId: string;

  beforeAll(async () => {
    ({ sql, close } = await openTestDatabase());
    providerId = (await addAccount(sql, 'provider')).accountId;
  });
  afterAll(() => close());
  beforeEach(() => sql`TRUNCATE services`);

  const add = (fields: Partial<typeof LISTING_FIELDS> = {}) =>
    insertListing(sql, { ...LISTING_FIELDS, ...fields, providerId });

  it('is ready once it has every listing that is not removed', async () => {
    const [active, paused, removed] = [await add(), await add(), await add()];
    await updateListing(sql, paused.id, { status: 'paused' }, 'any');
    await removeListing(sql, removed.id, 'any');
    const catalog = makeCatalog(sql);
    expect(catalog.ready()).toBe(false);
    await catalog.start();
    expect(catalog.ready()).toBe(true);
    expect(catalog.get(active.id)).toEqual(active);
    expect(catalog.get(paused.id)?.status).toBe('paused');
    expect(catalog.get(removed.id)).toBeUndefined();
    expect([...catalog.listings()]).toHaveLength(2);
  });

  it('reads a catalog of several pages completely', async () => {
    await sql`
      INSERT INTO services (id, provider_id, name, description, endpoint, price, category, timeout_seconds)
      SELECT gen_random_uuid(), ${providerId}, 'n' || n, '', 'http://service.example/', n, 'data', 60
      FROM generate_series(1, 1500) AS n`;
    const catalog = await startedCatalog(sql);
    expect(new Set([...catalog.listings()].map(({ priceMicros }) => priceMicros)).size).toBe(1_500);
  });

  it('learns what another gateway changed from its message, without a full reading', async () => {
    const catalog = await startedCatalog(sql);
    const { id } = await add();
    await until(() => catalog.get(id));
    await updateListing(sql, id, { status: 'paused', priceMicros: 7 }, 'any');
    await until(() => catalog.get(id)?.status === 'paused' && catalog.get(id)?.priceMicros === 7);
    await updateListing(sql, id, { status: 'active' }, 'any');
    await until(() => catalog.get(id)?.status === 'active');
    await removeListing(sql, id, 'any');
    await until(() => catalog.get(id) === undefined);
  });

  it('announces a change only when its transaction commits', async () => {
    const catalog = await startedCatalog(sql);
    const kept = await add();
    await until(() => catalog.get(kept.id));
    await sql
      .begin(async (tx) => {
        await updateListing(within(tx), kept.id, { priceMicros: 9 }, 'any');
        throw new Error('rolled back');
      })
      .catch(() => {});
    // Messages arrive in order of commit: when this one is here, the other one never comes.
    const marker = await add();
    await until(() => catalog.get(marker.id));
    expect(catalog.get(kept.id)?.priceMicros).toBe(LISTING_FIELDS.priceMicros);
  });

  it('shows a change made by this gateway at once', async () => {
    const catalog = await startedCatalog(sql);
    const listing = await add();
    catalog.apply(listing);
    expect(catalog.get(listing.id)).toEqual(listing);
  });

  it('keeps up with many changes of many rows at once', async () => {
    const catalog = await startedCatalog(sql);
    const ids = await Promise.all(Array.from({ length: 50 }, async () => (await add()).id));
    await Promise.all(
      ids.flatMap((id) => [1, 2, 3].map((priceMicros) => updateListing(sql, id, { priceMicros }, 'any'))),
    );
    const rows = await sql<{ id: string; price: number }[]>`SELECT id, price FROM services`;
    await until(() => rows.every(({ id, price }) => catalog.get(id)?.priceMicros === price));
  });

  it('finds by its periodic reading a change that no message announced', async () => {
    const { id } = await add();
    const catalog = await startedCatalog(sql, { rereadMs: 50 });
    await sql`UPDATE services SET price = 123 WHERE id = ${id}`;
    await until(() => catalog.get(id)?.priceMicros === 123);
    await sql`DELETE FROM services WHERE id = ${id}`;
    await until(() => catalog.get(id) === undefined);
  });

  it('makes one short query per period, and rereads only what differs from its own state', async () => {
    const pages: unknown[][] = [];
    let comparisons = 0;
    const recorded = new Proxy(sql, {
      apply: (target, self, args) => {
        if (String(args[0]).includes('ORDER BY id')) pages.push(args);
        if (String(args[0]).includes('GROUP BY bucket')) comparisons++;
        return Reflect.apply(target, self, args);
      },
    });
    const compared = async (times: number) => {
      const before = comparisons;
      await until(() => comparisons > before + times);
    };
    await sql`
      INSERT INTO services (id, provider_id, name, description, endpoint, price, category, timeout_seconds)
      SELECT gen_random_uuid(), ${providerId}, 'n' || n, '', 'http://service.example/', n, 'data', 60
      FROM generate_series(1, 1000) AS n`;
    const { id } = await add();
    const catalog = await startedCatalog(recorded, { rereadMs: 20 });
    await compared(3);
    const before = pages.length;
    // Changes that a message announced, or that this gateway made, are not read again half a minute later.
    catalog.apply((await updateListing(sql, id, { priceMicros: 4 }, 'any')) as Listing);
    const added = await add();
    await until(() => catalog.get(added.id));
    await removeListing(sql, added.id, 'any');
    await until(() => !catalog.get(added.id));
    await compared(3);
    const announced = pages.length;
    // A comparison may run between a change and its message. Then it reads the bucket of the change, which is short too.
    expect(announced - before).toBeLessThanOrEqual(3);
    await compared(3);
    expect(pages).toHaveLength(announced);
    // By hand: the listings of its bucket are read, 4 or so of 1 000.
    const told: string[] = [];
    catalog.onChange((changed) => told.push(changed));
    await sql`UPDATE services SET price = 5 WHERE id = ${id}`;
    await until(() => catalog.get(id)?.priceMicros === 5);
    await compared(3);
    expect(pages).toHaveLength(announced + 1);
    expect(told).toEqual([id]);
    // Many by hand: everything is read in one pass of three pages.
    await sql`UPDATE services SET price = 9`;
    await until(() => [...catalog.listings()].every(({ priceMicros }) => priceMicros === 9));
    expect(pages).toHaveLength(announced + 4);
  });

  it('loses the listings of a suspended account, and regains them when it is resumed, even without a message', async () => {
    const seller = (await addAccount(sql, 'provider')).accountId;
    const sold = () => insertListing(sql, { ...LISTING_FIELDS, providerId: seller });
    const [active, paused, removed, other] = [await sold(), await sold(), await sold(), await add()];
    await updateListing(sql, paused.id, { status: 'paused' }, 'any');
    const hearing = await startedCatalog(sql);
    const deaf = await startedCatalog(withoutMessages(sql), { rereadMs: 20 });
    const suspension = new Suspension({ sql, state: { put: async () => {} }, cache: { invalidateAccount: () => {} } });
    for (const round of [1, 2]) {
      expect(await suspension.set(seller, 'suspended', null, OPERATOR)).toMatchObject({ status: 'suspended' });
      await until(() => [hearing, deaf].every((catalog) => [active, paused].every(({ id }) => !catalog.get(id))));
      // A change of the listing by an admin meanwhile does not bring it back.
      const patched = await updateListing(sql, active.id, { priceMicros: round }, 'any');
      for (const catalog of [hearing, deaf]) catalog.apply(patched as Listing);
      if (round === 1) await removeListing(sql, removed.id, 'any');
      const late = await startedCatalog(sql);
      for (const catalog of [hearing, deaf, late]) {
        expect(Array.from(catalog.listings(), ({ id }) => id)).toEqual([other.id]);
      }
      await suspension.set(seller, 'active', null, OPERATOR);
      await until(() => [hearing, deaf].every((catalog) => catalog.get(active.id)?.priceMicros === round));
      for (const catalog of [hearing, deaf]) {
        await until(() => catalog.get(paused.id)?.status === 'paused');
        expect(catalog.get(removed.id)).toBeUndefined();
      }
    }
    expect(await suspension.set(uuidv7(), 'suspended', null, OPERATOR)).toBeNull();
  });

  describe('for an account that is suspended or resumed', () => {
    let seller: string;
    let published: number;
    let suspension: Suspension;
    const sold = (on: Sql = sql) => insertListing(on, { ...LISTING_FIELDS, providerId: seller });
    const isSomebodyWaiting = async (): Promise<boolean> => {
      const rows = await sql`
        SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
      return rows.length > 0;
    };
    beforeEach(async () => {
      seller = (await addAccount(sql, 'provider')).accountId;
      published = 0;
      const put = async (): Promise<void> => void published++;
      suspension = new Suspension({ sql, state: { put }, cache: { invalidateAccount: () => {} } });
    });

    it.each(['suspended', 'active'] as const)(
      'gives the new status to a listing change that waited for the suspension to commit: %s',
      async (status) => {
        const listing = await sold();
        if (status === 'active') await suspension.set(seller, 'suspended', null, OPERATOR);
        const catalog = await startedCatalog(sql);
        let changing: Promise<Listing | null> = Promise.resolve(null);
        await sql.begin(async (tx) => {
          await tx`UPDATE accounts SET status = ${status} WHERE id = ${seller}`;
          await announceListingsOf(tx, seller);
          changing = updateListing(sql, listing.id, { priceMicros: 7 }, 'any');
          await until(isSomebodyWaiting);
        });
        const changed = (await changing) as Listing;
        expect(changed).toMatchObject({ priceMicros: 7, isSuspended: status === 'suspended' });
        catalog.apply(changed);
        expect(catalog.get(listing.id)?.priceMicros).toBe(status === 'active' ? 7 : undefined);
      },
    );

    it('treats a listing that is added during the suspension like the others', async () => {
      const listed = await sold();
      const catalog = await startedCatalog(sql);
      let suspending: Promise<unknown> = Promise.resolve();
      let added = listed;
      await sql.begin(async (other) => {
        // Delays the end of the suspension until the new listing has been read.
        await other`SELECT FROM services WHERE id = ${listed.id} FOR UPDATE`;
        await sql.begin(async (tx) => {
          added = await sold(within(tx));
          suspending = suspension.set(seller, 'suspended', null, OPERATOR);
          await until(isSomebodyWaiting);
        });
        await until(() => catalog.get(added.id));
        await until(isSomebodyWaiting);
      });
      await suspending;
      await until(() => !catalog.get(listed.id) && !catalog.get(added.id));
    });

    it('finds a status that was changed by hand in the database with the next full reading', async () => {
      const { id } = await sold();
      const catalog = await startedCatalog(sql, { rereadMs: 20 });
      for (const status of ['suspended', 'active', 'suspended', 'active']) {
        await sql`UPDATE accounts SET status = ${status} WHERE id = ${seller}`;
        await until(() => (catalog.get(id) === undefined) === (status === 'suspended'));
      }
    });

    it('writes only Redis again if the account already has that status', async () => {
      await sold();
      await addKeyTo(sql, seller, 'provider');
      for (const status of ['suspended', 'active'] as const) {
        await suspension.set(seller, status, null, OPERATOR);
        const [{ sums: before }, times] = [await selectBucketSums(sql), published];
        expect(await suspension.set(seller, status, null, OPERATOR)).toMatchObject({
          ownerId: 'owner',
          status,
        });
        expect((await selectBucketSums(sql)).sums).toEqual(before);
        // One write for each of the account's two keys.
        expect(published).toBe(times + 2);
      }
    });
  });

  it('ignores messages that are not a service id', async () => {
    const log = new CapturedLog();
    const catalog = await startedCatalog(sql, { log });
    await sql`SELECT pg_notify('tollgate_services', ${`'; DROP TABLE services; --`})`;
    const { id } = await add();
    await until(() => catalog.get(id));
    expect(log.lines).toEqual([]);
  });

  it('does nothing after stop', async () => {
    const catalog = await startedCatalog(sql, { rereadMs: 20 });
    const witness = await startedCatalog(sql);
    await catalog.stop();
    const { id } = await add();
    await until(() => witness.get(id));
    expect(catalog.get(id)).toBeUndefined();
  });
});

describe('the catalog while Postgres is away', () => {
  it('keeps the last snapshot, logs once, and catches up when Postgres is back', async () => {
    const postgres = await startTestPostgres();
    const sql = openPostgres({ url: postgres.url, maxConnections: 2, applicationName: 'test' });
    try {
      await migrate(sql, readMigrations('migrations'));
      const { accountId: providerId } = await addAccount(sql, 'provider');
      const { id } = await insertListing(sql, { ...LISTING_FIELDS, providerId });
      const log = new CapturedLog();
      const catalog = await startedCatalog(sql, { log, rereadMs: 100 });
      await postgres.kill();
      await until(() => log.lines.length > 0);
      // Long enough for many failed readings.
      await new Promise((resolve) => setTimeout(resolve, 1_000));
      expect(log.lines.map(({ level }) => level)).toEqual(['error']);
      expect(catalog.get(id)?.priceMicros).toBe(LISTING_FIELDS.priceMicros);
      expect(catalog.ready()).toBe(true);
      await postgres.restart();
      const added = await until(() => insertListing(sql, { ...LISTING_FIELDS, providerId }).catch(() => null));
      await until(() => catalog.get(added.id));
      await until(() => log.lines.at(-1)?.level === 'warn');
    } finally {
      await sql.end({ timeout: 1 });
      await postgres.stop();
    }
  });

  it('receives messages again after its connection was cut', async () => {
    const { sql, close } = await openTestDatabase();
    try {
      const { accountId: providerId } = await addAccount(sql, 'provider');
      const catalog = await startedCatalog(sql);
      const cut = await sql`
        SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND query ILIKE 'listen%'`;
      expect(cut).toHaveLength(1);
      // Sent while nobody listens: only the full reading of the reconnection can find it.
      const missed = await insertListing(sql, { ...LISTING_FIELDS, providerId });
      await until(() => catalog.get(missed.id));
      const heard = await insertListing(sql, { ...LISTING_FIELDS, providerId });
      await until(() => catalog.get(heard.id));
    } finally {
      await Promise.all(open.map((catalog) => catalog.stop()));
      await close();
    }
  });

  it('starts without Postgres, is not ready, and loads once when Postgres is there', async () => {
    const postgres = await startTestPostgres();
    const sql = openPostgres({ url: postgres.url, maxConnections: 2, applicationName: 'test' });
    try {
      await migrate(sql, readMigrations('migrations'));
      const { accountId: providerId } = await addAccount(sql, 'provider');
      const { id } = await insertListing(sql, { ...LISTING_FIELDS, providerId });
      await postgres.stop();
      const catalog = await startedCatalog(sql);
      expect(catalog.ready()).toBe(false);
      expect(catalog.get(uuidv7())).toBeUndefined();
      await postgres.restart();
      await until(() => catalog.ready());
      expect(catalog.get(id)).toBeDefined();
      const heard = await until(() => insertListing(sql, { ...LISTING_FIELDS, providerId }).catch(() => null));
      await until(() => catalog.get(heard.id));
    } finally {
      await sql.end({ timeout: 1 });
      await postgres.stop();
    }
  });
});
