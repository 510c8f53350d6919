// A gateway that starts while `main.js reshard` runs: one of the two always finds the other.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { WrongLayout } from '../../src/ledger/layout.ts';
import { reshard } from '../../src/roles/reshard.ts';
import { readLeaseAges } from '../../src/traffic/leases.ts';
import { Marketplace } from './marketplace.ts';

let market: Marketplace;
beforeAll(async () => {
  market = await Marketplace.start({}, { writer: false });
});
afterAll(() => market.stop());

const instances = async (): Promise<number> => (await readLeaseAges(market.stores.redis, market.stores.keys)).size;

it('during a reshard, a gateway that passed its first check is refused once Redis has its lease', async () => {
  const { sql } = market.stores;
  const before = await instances();
  await sql`UPDATE installation SET moving_since = now()`;
  await expect(market.anotherGateway()).rejects.toThrow(WrongLayout);
  // A reshard that looks from now on finds the lease, until it runs out.
  expect(await instances()).toBe(before + 1);
  await sql`UPDATE installation SET moving_since = NULL`;
  const { stop } = await market.anotherGateway();
  await stop();
});

it('a reshard finds a gateway without calls by its lease as soon as that gateway has started', async () => {
  const { stop } = await market.anotherGateway();
  await expect(reshard(market.stores, { instanceLeaseSeconds: 15 })).rejects.toThrow(/a gateway runs/);
  expect(await market.stores.sql`SELECT moving_since FROM installation`).toEqual([{ moving_since: null }]);
  await stop();
});
