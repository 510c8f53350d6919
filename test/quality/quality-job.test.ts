import { beforeAll, expect, it } from 'vitest';
import type { Quality } from '../../src/catalog/quality.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { openPostgres } from '../../src/platform/postgres.ts';
import { QualityFeed } from '../../src/quality/quality-feed.ts';
import { QualityJob } from '../../src/quality/quality-job.ts';
import { selectEvidence, selectJudgedServices } from '../../src/quality/quality-sql.ts';
import { addAccount, addCall, addService } from '../support/accounts.ts';
import { QUIET } from '../support/store.ts';
import { sql, url, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

useDatabase();

let provider: KeyRecord;
let buyers: KeyRecord[];
beforeAll(async () => {
  provider = await addAccount(sql, 'provider');
  buyers = await Promise.all(Array.from({ length: 4 }, () => addAccount(sql)));
});

const call = (serviceId: string, buyer: KeyRecord, outcome: string, latencyUs = 20_000, atMs = Date.now()) =>
  addCall(sql, { buyer, serviceId, providerId: provider.accountId, outcome, latencyUs, amount: 0, atMs });

const DAY_MS = 86_400_000;

it('the job brings measured qualities from Postgres to the gateways, and brings changed ones again', async () => {
  const services: string[] = [];
  for (let i = 0; i < 5; i++) services.push(await addService(sql, provider.accountId));
  const [good, bad, mixed, quiet] = services as [string, string, string, string];
  for (const buyer of buyers) {
    for (let n = 0; n < 3; n++) {
      await call(good, buyer, 'completed');
      await call(bad, buyer, 'completed', 20_000, Date.now() - 8 * DAY_MS);
      await call(bad, buyer, 'refunded:upstream_5xx');
      await call(mixed, buyer, n === 0 ? 'refunded:upstream_timeout' : 'completed');
      await call(mixed, buyer, 'refunded:caller_gone');
    }
  }
  const known = new Map<string, number>();
  const trends = new Map<string, number | null>();
  const sizes: number[] = [];
  const take = async (qualities: ReadonlyMap<string, Quality>) => {
    sizes.push(qualities.size);
    for (const [id, { value, trend, record }] of qualities) {
      expect(record?.calls, 'each has calls').toBeGreaterThan(0);
      known.set(id, value);
      trends.set(id, trend);
    }
  };
  const job = new QualityJob({
    sql,
    isActive: () => true,
    everyMs: 20,
    log: { info: console.error, warn: console.error },
  });
  const feed = new QualityFeed({ sql, take, everyMs: 20, log: { info: console.error, warn: console.error } });
  job.start();
  feed.start();
  await until(() => known.has(good) && known.has(bad) && known.has(mixed));
  const before = known.get(mixed) as number;
  expect(known.get(good)).toBeGreaterThan(before);
  expect(before).toBeGreaterThan(known.get(bad) as number);
  expect(known.has(quiet)).toBe(false);
  expect(trends.get(good), 'nothing was known a week ago').toBeNull();
  expect(trends.get(bad)).toBeLessThan(-5);
  for (const buyer of buyers) await call(mixed, buyer, 'completed');
  await until(() => (known.get(mixed) as number) > before);
  for (const quality of known.values()) expect(quality, 'has one decimal').toBe(Math.round(quality * 10) / 10);
  await job.stop(1_000);
  await feed.stop();
});

const qualityOf = async (id: string): Promise<number | undefined> =>
  (await sql<{ quality: number }[]>`SELECT quality::float8 AS quality FROM service_quality WHERE service_id = ${id}`)[0]
    ?.quality;

it('the job rates all other services while one cannot be rated in time, and rates that one later', async () => {
  const services: string[] = [];
  for (let i = 0; i < 4; i++) services.push(await addService(sql, provider.accountId));
  const [slow, ...others] = services as [string, string, string, string];
  for (const id of services) await call(id, buyers[0] as KeyRecord, 'completed');
  await sql`
    INSERT INTO service_quality (service_id, quality, lower_bound, evidence, success_rate, buyers, calls, calls_succeeded, changed_at,
                                 computed_at)
    VALUES (${slow}, 7, 7, 0, 0, 0, 0, 0, now(), now())`;
  const hasty = openPostgres({ url, maxConnections: 2, applicationName: 'job', settings: { statement_timeout: 300 } });
  const job = new QualityJob({ sql: hasty, isActive: () => true, everyMs: 20, log: QUIET });
  // A lock on the row makes the statement that judges the service wait too long.
  await sql.begin(async (tx) => {
    await tx`SELECT FROM service_quality WHERE service_id = ${slow} FOR UPDATE`;
    job.start();
    for (const id of others) await until(async () => ((await qualityOf(id)) ?? 0) > 50);
    expect(await qualityOf(slow)).toBe(7);
  });
  await call(slow, buyers[1] as KeyRecord, 'completed');
  await until(async () => ((await qualityOf(slow)) ?? 0) > 50);
  await job.stop(1_000);
  await hasty.end();
});

it('the job rates a service with very many rows by the newest rows', async () => {
  const id = await addService(sql, provider.accountId);
  const hourMs = 3_600_000;
  for (const [i, outcome] of ['completed', 'completed', 'refunded:upstream_5xx', 'refunded:upstream_5xx'].entries())
    await addCall(sql, {
      buyer: buyers[i] as KeyRecord,
      serviceId: id,
      providerId: provider.accountId,
      outcome,
      amount: 0,
      atMs: Date.now() - (i + 1) * hourMs,
    });
  const [all] = await selectEvidence(sql, [id]);
  expect(all).toMatchObject({ rows: 4, buyers: 4 });
  const [newest] = await selectEvidence(sql, [id], 2);
  expect(newest).toMatchObject({ rows: 2, buyers: 2 });
  // The same sum of floats, which Postgres may add in another order.
  expect(newest?.succeeded).toBeCloseTo(newest?.weight ?? 0, 12);
});

it('the job leaves out services that were removed', async () => {
  const id = await addService(sql, provider.accountId);
  await call(id, buyers[0] as KeyRecord, 'completed');
  expect(await selectJudgedServices(sql, null, 1_000)).toContain(id);
  await sql`UPDATE services SET status = 'removed' WHERE id = ${id}`;
  expect(await selectJudgedServices(sql, null, 1_000)).not.toContain(id);
});

it('the job compares latencies of successful calls only: mistakes, failures and callers who left are excluded', async () => {
  const id = await addService(sql, provider.accountId);
  const buyer = buyers[0] as KeyRecord;
  for (let n = 0; n < 2; n++) await call(id, buyer, 'completed', 20_000);
  const hourAgo = { buyer, serviceId: id, providerId: provider.accountId, amount: 0, atMs: Date.now() - 3_600_000 };
  for (const atMs of [Date.now(), hourAgo.atMs]) {
    await addCall(sql, { ...hourAgo, atMs, outcome: 'refunded:caller_gone', latencyUs: 300_000_000 });
    await addCall(sql, { ...hourAgo, atMs, outcome: 'refunded:payload_too_large', latencyUs: 300_000_000 });
    await addCall(sql, { ...hourAgo, atMs, outcome: 'refunded:upstream_5xx', latencyUs: 1 });
  }
  const [evidence] = await selectEvidence(sql, [id]);
  expect(evidence?.latencyUs).toBeCloseTo(20_000);
});
