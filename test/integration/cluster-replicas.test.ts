// REDIS_WAIT_REPLICAS=1 with a Redis Cluster: each node waits for a replica of its own.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { evenTags, slotOf } from '../../src/platform/cluster/hash-tags.ts';
import { shardOf } from '../../src/platform/shards.ts';
import { type ClusterNode, type RunningCluster, startTestCluster } from '../support/cluster.ts';
import { until } from '../support/wait.ts';
import { echo, type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const SHARDS = 16;
const TAGS = evenTags(SHARDS);
const PRICE = 0.001;

let cluster: RunningCluster;
let market: Marketplace;
let service: TestService;
let listing: string;
/** A buyer of each of the two masters. */
let buyers: readonly [Key, Key];
let isOver = false;

const masterOf = (accountId: string): number =>
  Math.floor((slotOf(`{${TAGS[shardOf(accountId, SHARDS)]}}`) * 2) / 16_384);
const node = (master: number, isReplica: boolean): ClusterNode =>
  cluster.nodes.find((one) => one.master === master && one.isReplica === isReplica) as ClusterNode;

beforeAll(async () => {
  // No node fails over by itself here.
  [cluster, service] = await Promise.all([startTestCluster({ masters: 2, nodeTimeoutMs: 30_000 }), startService(echo)]);
  // Half of the timeout is waited for replicas. On a busy machine one that is well may need seconds.
  market = await Marketplace.start({
    REDIS_URL: cluster.url,
    REDIS_SHARDS: String(SHARDS),
    REDIS_WAIT_REPLICAS: '1',
    REDIS_COMMAND_TIMEOUT_MS: '5000',
  });
  listing = await market.service({ endpoint: service.url, price: PRICE });
  const found = new Map<number, Key>();
  while (found.size < 2) {
    const buyer = await market.buyer(10);
    found.set(masterOf(buyer.account_id), buyer);
  }
  buyers = [found.get(0) as Key, found.get(1) as Key];
});
afterAll(async () => {
  isOver = true;
  await market?.stop();
  await service?.close();
  await cluster?.stop();
});

type Answer = { readonly status: number; readonly usageId: string };

async function call(key: Key): Promise<Answer> {
  const response = await market.request(`${listing}/x`, { key });
  await response.arrayBuffer();
  return { status: response.status, usageId: response.headers.get('X-ACF-Usage-Id') ?? '' };
}

it('while the replica of one node is silent, only accounts on that node get 503', async () => {
  const [first, other] = buyers;
  node(0, true).pause();
  for (let i = 0; i < 2; i++) {
    const answers = await Promise.all([call(first), call(other)]);
    expect(answers.map(({ status }) => status)).toEqual([503, 200]);
  }
  expect(await market.metric('tollgate_trips_without_replicas_total')).toBeGreaterThan(0);
  node(0, true).resume();
  await until(async () => (await call(first)).status === 200);
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  expect(await market.balance(first)).toMatchObject({ balance: 10 - PRICE, held: 0 });
});

it('when a master is killed, its replica has every call that the gateway has answered', async () => {
  const [first] = buyers;
  const before = await market.records(first);
  const answers: Answer[] = [];
  const callers = Array.from({ length: 4 }, async () => {
    while (!isOver) answers.push(await call(first));
  });
  await until(() => answers.length >= 40);
  await node(0, false).kill();
  const heir = node(0, true);
  await cluster.ask(heir, 'CLUSTER FAILOVER TAKEOVER');
  // The other node's replica becomes that of the new master.
  const id = /[0-9a-f]{40}/.exec(await cluster.ask(heir, 'CLUSTER MYID'))?.[0];
  await until(async () => (await cluster.ask(node(1, true), `CLUSTER REPLICATE ${id}`)).includes('+OK\r\n+OK'));
  const late = answers.length;
  await until(() => answers.slice(late).some(({ status }) => status === 200));
  isOver = true;
  await Promise.all(callers);
  await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
  const known = new Set(before.map(({ usage_id }) => usage_id));
  const charged = (await market.records(first)).filter(({ usage_id, amount }) => amount > 0 && !known.has(usage_id));
  const answered = answers.filter(({ status }) => status === 200).map(({ usageId }) => usageId);
  expect(charged.map(({ usage_id }) => usage_id).toSorted()).toEqual(answered.toSorted());
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
});
