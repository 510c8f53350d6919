import { beforeAll, expect, it } from 'vitest';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { QualityFeed } from '../../src/quality/quality-feed.ts';
import { QualityJob } from '../../src/quality/quality-job.ts';
import { addAccount, addCall, addService } from '../support/accounts.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

useDatabase();

let provider: KeyRecord;
let buyers: KeyRecord[];
beforeAll(async () => {
  provider = await addAccount(sql, 'provider');
  buyers = await Promise.all(Array.from({ length: 4 }, () => addAccount(sql)));
});

const call = (serviceId: string, buyer: KeyRecord, outcome: string, latencyUs = 20_000) =>
  addCall(sql, { buyer, serviceId, providerId: provider.accountId, outcome, latencyUs, amount: 0 });

it('carries what calls showed from Postgres to the gateways, and again what changed', async () => {
  const services: string[] = [];
  for (let i = 0; i < 5; i++) services.push(await addService(sql, provider.accountId));
  const [good, bad, mixed, quiet] = services as [string, string, string, string];
  for (const buyer of buyers) {
    for (let n = 0; n < 3; n++) {
      await call(good, buyer, 'completed');
      await call(bad, buyer, 'refunded:upstream_5xx');
      await call(mixed, buyer, n === 0 ? 'refunded:upstream_timeout' : 'completed');
      await call(mixed, buyer, 'refunded:caller_gone');
    }
  }
  const known = new Map<string, number>();
  const sizes: number[] = [];
  const take = async (qualities: ReadonlyMap<string, number>) => {
    sizes.push(qualities.size);
    for (const [id, quality] of qualities) known.set(id, quality);
  };
  const job = new QualityJob({ sql, isActive: () => true, everyMs: 20, log: { warn: console.error } });
  const feed = new QualityFeed({ sql, take, everyMs: 20, log: { warn: console.error } });
  job.start();
  feed.start();
  await until(() => known.has(good) && known.has(bad) && known.has(mixed));
  const before = known.get(mixed) as number;
  expect(known.get(good)).toBeGreaterThan(before);
  expect(before).toBeGreaterThan(known.get(bad) as number);
  expect(known.has(quiet)).toBe(false);
  for (const buyer of buyers) await call(mixed, buyer, 'completed');
  await until(() => (known.get(mixed) as number) > before);
  for (const quality of known.values()) expect(quality, 'has one decimal').toBe(Math.round(quality * 10) / 10);
  await job.stop(1_000);
  await feed.stop();
});
