import { afterAll, beforeAll, expect, inject, it } from 'vitest';
import { evenTags, slotOf } from '../../src/platform/cluster/hash-tags.ts';
import { RedisNotSent } from '../../src/platform/redis.ts';
import { shardOf } from '../../src/platform/shards.ts';
import { type ClusterNode, moveSlot, type RunningCluster, startTestCluster } from '../support/cluster.ts';
import { until } from '../support/wait.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const SHARDS = 16;
/** Longer than any test leaves a node silent, on a machine of any speed: its replica would take over. */
const NODE_TIMEOUT_MS = 120_000;
const TAGS = evenTags(SHARDS);

let cluster: RunningCluster;
let market: Marketplace;
let service: TestService;
let listing: string;
/** A buyer for each of the three masters, by the range of slots that the master has at the beginning. */
let buyers: readonly Key[];

const masterOf = (accountId: string): number =>
  Math.floor((slotOf(`{${TAGS[shardOf(accountId, SHARDS)]}}`) * 3) / 16_384);

beforeAll(async () => {
  [cluster, service] = await Promise.all([startTestCluster({ nodeTimeoutMs: NODE_TIMEOUT_MS }), startService(echo)]);
  market = await Marketplace.start({
    REDIS_URL: cluster.url,
    REDIS_SHARDS: String(SHARDS),
    INSTANCE_LEASE_SECONDS: '10',
  });
  listing = await market.service({ endpoint: service.url, price: 0.001 });
  const found = new Map<number, Key>();
  while (found.size < 3) {
    const buyer = await market.buyer(10);
    found.set(masterOf(buyer.account_id), buyer);
  }
  buyers = [0, 1, 2].map((master) => found.get(master) as Key);
});
afterAll(async () => {
  await market?.stop();
  await service?.close();
  await cluster?.stop();
});

const call = async (key: Key): Promise<number> => {
  const response = await market.request(`${listing}/x`, { key });
  await response.arrayBuffer();
  return response.status;
};
const node = (master: number, isReplica = false): ClusterNode =>
  cluster.nodes.find((one) => one.master === master && one.isReplica === isReplica) as ClusterNode;
/** Waits until the connections of this test are open again: each tries again in its own time after its node was away. */
const reconnected = (): Promise<boolean> => {
  const { redis, keys } = market.stores;
  return until(() =>
    Promise.all(keys.open.map((open) => redis.command('exists', [open]))).then(
      () => true,
      (error) => {
        if (error instanceof RedisNotSent) return false;
        throw error;
      },
    ),
  );
};
const booksAreRight = async (): Promise<void> => {
  await reconnected();
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
};
const served = (key: Key): Promise<boolean> => until(async () => (await call(key)) === 200);

it('calls of accounts on all nodes are charged, stored and shown', async () => {
  for (const buyer of buyers) {
    for (let i = 0; i < 3; i++) expect(await call(buyer)).toBe(200);
    expect((await market.records(buyer)).length).toBe(3);
    expect(await market.balance(buyer)).toMatchObject({ balance: 9.997, held: 0 });
  }
  await booksAreRight();
});

it('free calls, refunds, credits and debits of accounts on all nodes are correct', async () => {
  const paid = await market.service({ endpoint: service.url, price: 0.5, free_calls: 1 });
  const gone = await startService(echo);
  const away = await market.service({ endpoint: gone.url, price: 1 });
  await gone.close();
  for (const [i, buyer] of buyers.entries()) {
    const { balance: before } = await market.balance(buyer);
    const paidCalls = [
      await market.request(`${paid}/x`, { key: buyer }),
      await market.request(`${paid}/x`, { key: buyer }),
    ];
    expect(paidCalls.map(({ headers }) => headers.get('x-acf-free-tier'))).toEqual(['true', 'false']);
    for (const each of paidCalls) await each.arrayBuffer();
    expect((await market.request(`${away}/x`, { key: buyer })).status).toBe(502);
    await market.credit(buyer, 2, `credit on node ${i}`);
    const debit = { account_id: buyer.account_id, amount: 0.25, reference: `debit on node ${i}`, reason: 'test' };
    await market.json('/api/v1/admin/debits', { key: market.admin, method: 'POST', body: debit });
    const ends = (await market.records(buyer)).slice(0, 3).map(({ outcome, amount }) => [outcome, amount]);
    expect(ends).toEqual([
      ['refunded:upstream_error', 0],
      ['completed', 0.5],
      ['completed', 0],
    ]);
    expect((await market.balance(buyer)).balance).toBeCloseTo(before + 2 - 0.25 - 0.5, 6);
  }
  await booksAreRight();
});

it('while a slot moves, calls of its shard are refused or carried out once, and afterwards all calls are served', async () => {
  const [moved, other] = buyers as [Key, Key, Key];
  const statuses: number[] = [];
  let isOver = false;
  const load = (async () => {
    while (!isOver) statuses.push(await call(moved));
  })();
  const slot = slotOf(`{${TAGS[shardOf(moved.account_id, SHARDS)]}}`);
  await moveSlot(cluster, slot, node(0), node(1), async () => {
    const before = statuses.length;
    await until(() => statuses.length > before + 3);
    expect(await call(other)).toBe(200);
  });
  await served(moved);
  isOver = true;
  await load;
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  expect(statuses).toContain(503);
  await booksAreRight();
  await moveSlot(cluster, slot, node(1), node(0), async () => {});
  await served(moved);
});

it('a silent master stops its own accounts only: calls of other accounts are served and stored', async () => {
  const [, silent, other] = buyers as [Key, Key, Key];
  const { total_calls: before } = await market.usage(other, 0);
  node(1).pause();
  const unanswered = call(silent);
  for (let i = 0; i < 20; i++) expect(await call(other)).toBe(200);
  await market.usage(other, before + 20);
  node(1).resume();
  expect([200, 503]).toContain(await unanswered);
  await served(silent);
  await booksAreRight();
});

it('a manual failover loses no call and no micro-dollar, and does not affect the other nodes', async () => {
  const [moved, ...others] = buyers as [Key, Key, Key];
  await cluster.ask(node(0, true), 'CLUSTER FAILOVER');
  await until(async () => {
    for (const other of others) expect(await call(other)).toBe(200);
    return (await cluster.ask(node(0, true), 'INFO replication')).includes('role:master');
  });
  await served(moved);
  await booksAreRight();
});

it('a master that dies under load stops its own accounts only, and its replica then serves them', async () => {
  const [, dead, ...others] = buyers as [Key, Key, Key];
  const shardsOf = (one: ClusterNode): Promise<number> =>
    market.metric(`tollgate_redis_node_shards{node="127.0.0.1:${one.port}"}`);
  const its = await shardsOf(node(1));
  expect([await market.metric('tollgate_redis_node_ready'), its > 0]).toEqual([3, true]);
  const moves = await market.metric('tollgate_redis_shard_moves_total');
  for (const one of cluster.nodes) {
    await cluster.ask(one, 'CONFIG SET cluster-node-timeout 5000');
    // On a slow machine another master may be silent for that long, too.
    if (one !== node(1, true)) await cluster.ask(one, 'CONFIG SET cluster-replica-no-failover yes');
  }
  await node(1).kill();
  await until(async () => (await market.metric('tollgate_redis_node_ready')) === 2);
  const statuses: number[] = [];
  await until(async () => {
    // Not each time: their keys have 300 requests a minute.
    const asked = statuses.length % 8 === 0 ? [buyers[0] as Key, ...others] : [];
    for (const other of asked) expect(await call(other)).toBe(200);
    statuses.push(await call(dead));
    return statuses.at(-1) === 200;
  }, 60_000);
  // Operators see that the replica has the shards, and no longer see the dead node.
  await until(async () => (await market.metric('tollgate_redis_node_ready')) === 3);
  expect([await shardsOf(node(1)), await shardsOf(node(1, true))]).toEqual([0, its]);
  expect(await market.metric('tollgate_redis_shard_moves_total')).toBe(moves + its);
  // Refused until the replica had taken over, and never charged for that.
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([]);
  await booksAreRight();
});

it('a gateway refuses to start with the URL of one node, or with another number of shards', async () => {
  const [, url] = /\+cluster(:\/\/[^,]*)/.exec(cluster.url) as RegExpExecArray;
  await expect(Marketplace.start({ REDIS_URL: `redis${url}` })).rejects.toThrow(
    /REDIS_URL must begin with redis\+cluster/,
  );
  const database = new URL(inject('postgresAdminUrl'));
  const [row] = await market.stores.sql<{ name: string }[]>`SELECT current_database() AS name`;
  database.pathname = `/${row?.name}`;
  await expect(
    Marketplace.start({ REDIS_URL: cluster.url, DATABASE_URL: database.href, REDIS_SHARDS: '32' }),
  ).rejects.toThrow(/has its data 16 shards in a Redis Cluster/);
  // Another installation: its database is new.
  await expect(Marketplace.start({ REDIS_URL: cluster.url })).rejects.toThrow(/holds the data of installation/);
});
