// REDIS_WAIT_REPLICAS=1: an admission and a settlement count only when a replica of Redis has them.

import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestReplica, type TestReplica } from '../support/replica.ts';
import { startTestRedis, type TestRedis } from '../support/stores.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { timed } from '../support/timed.ts';
import { until } from '../support/wait.ts';
import { type Key, Marketplace, startService, type TestService } from './marketplace.ts';

const PRICE = 0.001;
const MONEY = 10;
const COMMAND_TIMEOUT_MS = 1_000;

type Answer = { readonly status: number; readonly usageId: string };

let master: TestRedis;
let replica: TestReplica;
/** That of the replica once it is the master. */
let next: TestReplica | undefined;
/** The address of whichever Redis is the master. */
let front: TcpProxy;
let market: Marketplace;
let service: TestService;
let listing: string;
let buyer: Key;
/** Responses of `/waits` that the service has not sent yet. */
const waiting: ServerResponse[] = [];
/** Of all calls so far. */
const answers: Answer[] = [];
let isOver = false;

beforeAll(async () => {
  master = await startTestRedis();
  replica = await startTestReplica(master);
  front = await TcpProxy.open(master.port);
  service = await startService((request, response) => {
    if (request.url === '/waits') waiting.push(response);
    else response.end('ok');
  });
  market = await Marketplace.start({
    REDIS_URL: front.through(master.url),
    REDIS_WAIT_REPLICAS: '1',
    REDIS_COMMAND_TIMEOUT_MS: String(COMMAND_TIMEOUT_MS),
  });
  listing = await market.service({ endpoint: service.url, price: PRICE });
  buyer = await market.buyer(MONEY);
});
afterAll(async () => {
  isOver = true;
  await market?.stop();
  await service?.close();
  await front?.close();
  await next?.close();
  await replica?.close();
  await master?.stop();
});

async function call(path = '/x'): Promise<number> {
  const response = await market.request(`${listing}${path}`, { key: buyer });
  await response.arrayBuffer();
  answers.push({ status: response.status, usageId: response.headers.get('X-ACF-Usage-Id') ?? '' });
  return response.status;
}

/** Every call that was answered with 200 is stored and charged once, and nothing else is charged. */
async function isChargedFor(): Promise<void> {
  await until(async () => (await market.metric('tollgate_settlements_unconfirmed')) === 0);
  const charged = (await market.records(buyer)).filter(({ amount }) => amount > 0);
  const ids = answers.filter(({ status }) => status === 200).map(({ usageId }) => usageId);
  expect(charged.map(({ usage_id }) => usage_id).toSorted()).toEqual(ids.toSorted());
  const { balance, held } = await market.balance(buyer);
  expect({ micros: Math.round(balance * 1e6), held }).toEqual({ micros: (MONEY - ids.length * PRICE) * 1e6, held: 0 });
  expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
}

it('while no replica answers, a paid call gets 503 in time, and nothing stays charged once a replica is back', async () => {
  // On a busy machine the replica may be late, and the call is refused.
  await until(async () => (await call()) === 200);
  replica.server.pause();
  for (let i = 0; i < 3; i++) {
    const tookMs = await timed(async () => expect(await call()).toBe(503));
    // The bound of docs/guarantees.md. A busy machine may read an answer late.
    expect(tookMs).toBeLessThan(COMMAND_TIMEOUT_MS + 800);
  }
  expect(await market.metric('tollgate_trips_without_replicas_total')).toBeGreaterThan(0);
  replica.server.resume();
  await until(async () => (await call()) === 200);
  await isChargedFor();
});

it('a settlement that no replica has is sent again until a replica has it, and counts once', async () => {
  let answer = call('/waits');
  let made = answers.length + 1;
  await until(() => {
    if (waiting.length === 1) return true;
    // Refused, because on a busy machine the replica was late.
    if (answers.length === made) {
      answer = call('/waits');
      made++;
    }
    return false;
  });
  const missed = await market.metric('tollgate_trips_without_replicas_total');
  replica.server.pause();
  waiting[0]?.end('ok');
  expect(await answer).toBe(200);
  await until(async () => (await market.metric('tollgate_trips_without_replicas_total')) >= missed + 2);
  // The master has carried it out, and the writer may have stored it. To the gateway it is not confirmed.
  expect(await market.metric('tollgate_settlements_unconfirmed')).toBe(1);
  replica.server.resume();
  await isChargedFor();
  expect(await market.metric('tollgate_settlements_without_hold_total')).toBe(0);
});

it('no answered call is lost when the master is killed and a lagging replica takes its place', async () => {
  replica.line.delayMs = 25;
  const callers = Array.from({ length: 4 }, async () => {
    // A refused call does not use up the key's rate limit.
    while (!isOver) if ((await call()) !== 200) await pause(20);
  });
  const atFirst = answers.length;
  await until(() => answers.length >= atFirst + 40);
  await master.kill();
  await replica.promote();
  const before = answers.length;
  front.leadTo(replica.server.port);
  front.cut();
  // The new master has no replica yet.
  await until(() => market.stores.redis.ready && answers.slice(before).some(({ status }) => status === 503));
  const late = await market.anotherGateway();
  expect(market.log.lines.join()).toContain(' has 0 replicas, but REDIS_WAIT_REPLICAS is 1');
  await late.stop();
  next = await startTestReplica(replica.server);
  await until(() => answers.slice(before).some(({ status }) => status === 200));
  isOver = true;
  await Promise.all(callers);
  await isChargedFor();
});
