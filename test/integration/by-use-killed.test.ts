// A gateway that is killed with calls priced by use, which have idempotency keys, in its own process.

import { afterAll, beforeAll, expect, it } from 'vitest';
import { freePort } from '../../scripts/local/ports.mjs';
import { buildSources } from '../support/build.ts';
import { oneRedis } from '../support/redis-kind.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { until } from '../support/wait.ts';
import type { Peer } from '../upstream/helpers.ts';
import { Marketplace, SHARDS } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';
import { Scene } from './scene.ts';
import { SupervisorProcess } from './worker-stack.ts';

const LEASE = { INSTANCE_LEASE_SECONDS: '10' };
const TAG = 'Customer-17/eu:a.b@c_d';
const BEGUN = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n[data]\r\n';
const REPORT = '0\r\nX-ACF-Charge: 0.25\r\n\r\n';

let market: Marketplace;
let proxy: TcpProxy;
let gateway: SupervisorProcess;
let ports: { readonly PORT: string; readonly METRICS_PORT: string };

beforeAll(async () => {
  market = await Marketplace.start(LEASE);
});
afterAll(() => market.stop());

async function startGateway(): Promise<void> {
  ports = { PORT: String(await freePort()), METRICS_PORT: String(await freePort()) };
  gateway = new SupervisorProcess(
    buildSources(),
    {
      ...ports,
      ...LEASE,
      DATABASE_URL: market.databaseUrl,
      REDIS_URL: proxy.through(market.redis.url),
      REDIS_SHARDS: String(SHARDS),
      HOST: '127.0.0.1',
      ONE_PROCESS: 'on',
      UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8',
      REDIS_COMMAND_TIMEOUT_MS: '5000',
    },
    'gateway',
  );
  await until(() => gateway.child.hasExited() || gateway.log.some(({ msg }) => msg === 'ready'));
}

const metric = async (name: string): Promise<string | undefined> =>
  new RegExp(`^${name}(?:{.*})? (.*)$`, 'm').exec(
    await (await fetch(`http://127.0.0.1:${ports.METRICS_PORT}/metrics`)).text(),
  )?.[1];

/** Calls whose services have begun to answer: who called, the call, and its service. */
async function begin(
  scene: Scene,
  baseUrl = `http://127.0.0.1:${ports.PORT}`,
): Promise<{ scene: Scene; caller: RawCaller; service: Peer }> {
  const caller = await RawCaller.connect(baseUrl);
  const headers = ['Idempotency-Key: once', `X-ACF-Tag: ${TAG}`];
  caller.send(requestText(`GET ${scene.path}`, { key: scene.buyer, headers }));
  await caller.until((received) => received.includes('data'));
  return { scene, caller, service: scene.service.peers.at(-1) as Peer };
}

/** The lease of a dead gateway runs out at once. */
async function expireLease(): Promise<void> {
  const { redis, keys } = market.stores;
  const instance = gateway.log.find(({ msg }) => msg === 'ready')?.instance as string;
  await Promise.all(keys.lease.map((lease) => redis.command('hset', [lease, instance, '1'])));
}

it.skipIf(oneRedis('stands between a gateway and its Redis'))(
  'a gateway that is killed has charged, exactly once, what was captured in Redis, and nothing else',
  { timeout: 180_000 },
  async () => {
    const first = await Scene.open(
      market,
      async (peer) => {
        for (;;) {
          await peer.takeRequest();
          peer.send(BEGUN);
        }
      },
      { max_price: 0.5 },
    );
    proxy = await TcpProxy.open(market.redis.port);
    await startGateway();
    try {
      const captured = await begin(first);
      const unreported = await begin(await first.withAnotherBuyer());
      const left = await begin(await first.withAnotherBuyer());
      left.caller.socket.resetAndDestroy();
      await until(async () => (await metric('tollgate_calls_unheard')) === '1');

      // Redis carries the settlement out, and the gateway does not learn of it.
      proxy.set('swallow replies');
      captured.service.send(REPORT);
      await until(async () => (await market.balance(captured.scene.buyer)).held === 0);
      // The gateway knows the report, and its caller has the whole answer, but Redis learns of neither.
      proxy.set('swallow requests');
      unreported.service.send(REPORT);
      await unreported.caller.until((received) => received.includes('\r\n0\r\n\r\n'));
      await gateway.stop('SIGKILL');
      await expireLease();

      const records = [
        await left.scene.expectEnd({ outcome: 'abandoned', status: 0 }),
        await unreported.scene.expectEnd({ outcome: 'abandoned', status: 0 }),
        await captured.scene.expectEnd({ outcome: 'completed', status: 200, amount: 0.25 }),
      ];
      // The tag is in the hold, so it is known of a call whose gateway died.
      expect(records.map(({ tag }) => tag)).toEqual([TAG, TAG, TAG]);
      const { by_tag } = await market.json<{ by_tag: unknown }>('/api/v1/usage', { key: captured.scene.buyer });
      expect(by_tag).toEqual([{ tag: TAG, calls: 1, free_calls: 0, spent: 0.25, avg_latency_ms: expect.any(Number) }]);
      expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });

      // The answer to the charged call went with the gateway: nobody pays for it again. The swept calls are made again.
      const served = first.service.peers.length;
      const lost = await until(async () => {
        const caller = await RawCaller.connect(market.baseUrl);
        const options = { key: captured.scene.buyer, headers: ['Idempotency-Key: once'] };
        const answer = await caller.exchange(`GET ${first.path}`, options);
        caller.destroy();
        return answer.status === 409 ? null : answer;
      });
      expect([lost.status, lost.json()]).toEqual([422, expect.objectContaining({ error: 'answer_not_kept' })]);
      expect(first.service.peers).toHaveLength(served);
      for (const { scene } of [unreported, left]) {
        const { caller, service } = await begin(scene, market.baseUrl);
        service.send(REPORT);
        expect((await caller.response()).get('Idempotent-Replayed')).toBeNull();
        const ends = (await market.records(scene.buyer)).map(({ outcome, amount }) => [outcome, amount]);
        expect(ends).toEqual([
          ['completed', 0.25],
          ['abandoned', 0],
        ]);
      }
      expect((await market.records(captured.scene.buyer)).map(({ amount }) => amount)).toEqual([0.25]);
    } finally {
      if (!gateway.child.hasExited()) await gateway.stop('SIGKILL');
      await proxy.close();
      await first.close();
    }
  },
);
