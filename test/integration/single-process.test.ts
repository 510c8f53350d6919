// Processes without a supervisor: `ONE_PROCESS=on node dist/main.js`, and each role by itself.

import { createServer, type Server } from 'node:net';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { freePort } from '../../scripts/local/ports.mjs';
import { buildSources } from '../support/build.ts';
import { startMarketRedis } from '../support/redis-kind.ts';
import { createDatabase } from '../support/stores.ts';
import { until } from '../support/wait.ts';
import type { Key } from './marketplace.ts';
import { RawCaller } from './raw-caller.ts';
import { SupervisorProcess } from './worker-stack.ts';

let env: Record<string, string>;
let cleanUp: () => Promise<void>;

beforeAll(async () => {
  const [database, redis] = [await createDatabase(), await startMarketRedis()];
  env = {
    DATABASE_URL: database.url,
    REDIS_URL: redis.url,
    HOST: '127.0.0.1',
    PORT: String(await freePort()),
    METRICS_PORT: String(await freePort()),
    ONE_PROCESS: 'on',
  };
  cleanUp = async () => {
    await redis.release();
    await database.drop();
  };
});
afterAll(() => cleanUp());

async function start(role = 'all', settings: Record<string, string> = {}): Promise<SupervisorProcess> {
  const process = new SupervisorProcess(buildSources(), { ...env, ...settings }, role);
  await until(() => process.child.hasExited() || process.log.some(({ msg }) => msg === 'ready'));
  return process;
}

const messages = (process: SupervisorProcess): string[] => process.log.map(({ msg }) => msg);

describe('a single process', () => {
  it('drains at SIGHUP, as it does at the other signals of the next test', async () => {
    const single = await start();
    expect(await single.stop('SIGHUP')).toBe(0);
    // The writer may log lines between these.
    const steps = ['draining', 'gateway drained', 'stopped'];
    expect(messages(single).filter((message) => steps.includes(message))).toEqual(steps);
  });

  it('writes a line for each request with ACCESS_LOG=on, with ids and a route, but nothing that a caller wrote', async () => {
    const single = await start('all', { ACCESS_LOG: 'on' });
    const api = `http://127.0.0.1:${env.PORT}/api/v1`;
    const body = JSON.stringify({ owner_id: 'hunter2', role: 'buyer' });
    const opened = await fetch(`${api}/keys?hunter2`, { method: 'POST', body });
    const { key_id, secret } = (await (await fetch(`${api}/keys`, { method: 'POST', body })).json()) as Key;
    const headers = { authorization: `Bearer ${key_id}:${secret}`, 'x-hunter2': 'hunter2' };
    const wrong = { authorization: `Bearer ${key_id}:${secret.slice(0, -1)}${secret.endsWith('x') ? 'y' : 'x'}` };
    const asked = [
      [opened, '', 'POST /api/v1/keys', 400],
      [await fetch(`${api}/keys/me`, { headers }), key_id, 'GET /api/v1/keys/me', 200],
      [await fetch(`${api}/keys/me`, { headers: wrong }), '', 'GET /api/v1/keys/me', 401],
      [await fetch(`${api}/services/hunter2`, { headers }), key_id, 'GET /api/v1/services/{id}', 404],
      [await fetch(`${api}/hunter2`), '', '', 404],
      [await fetch(`${api}/proxy/hunter2?hunter2`, { headers }), key_id, 'GET /api/v1/proxy/{service_id}', 404],
      [await fetch(`${api}/proxy/hunter2`, { method: 'PURGE' }), '', '/api/v1/proxy/{service_id}', 405],
      [await fetch(new URL('/mcp', api), { method: 'POST', body: 'hunter2', headers }), key_id, 'POST /mcp', 400],
    ] as const;
    expect(await single.stop('SIGTERM')).toBe(0);
    expect(single.output).not.toContain('hunter2');
    const lines = new Map(single.log.map((line) => [line.request_id, line]));
    for (const [{ headers: answered, status }, keyId, route, expected] of asked) {
      expect(status).toBe(expected);
      expect(lines.get(answered.get('x-request-id') ?? '')).toMatchObject({
        key_id: keyId,
        route,
        status,
        role: 'all',
      });
    }
  });

  it.each([
    ['SIGTERM', 'SIGINT'],
    ['SIGHUP', 'SIGTERM'],
    ['SIGINT', 'SIGHUP'],
  ] as const)('that drains at %s ends at once if %s follows', async (first, second) => {
    const single = await start();
    // A request that never becomes complete keeps the process busy.
    const caller = await RawCaller.connect(`http://127.0.0.1:${env.PORT}`);
    caller.send('POST /api/v1/keys HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{');
    await until(async () => {
      const other = await RawCaller.connect(`http://127.0.0.1:${env.PORT}`);
      const { status } = await other.exchange('GET /healthz');
      other.destroy();
      return status === 200;
    });
    single.signal(first);
    await until(() => messages(single).includes('draining'));
    // A second signal within half a second counts as the same one, because a shell and the kernel both send SIGHUP.
    const toldAt = performance.now();
    await until(() => {
      if (!single.child.hasExited()) single.signal(second);
      return single.child.hasExited();
    });
    expect(performance.now() - toldAt).toBeGreaterThan(400);
    expect(await single.stop(second)).toBe(1);
    expect(messages(single)).not.toContain('stopped');
    caller.destroy();
  });
});

describe('gateway and writer apart', () => {
  it('need two metrics ports on one host: otherwise the second process exits before it takes a call', async () => {
    const taken: Server = createServer();
    const port = await new Promise<string>((resolve) => {
      taken.listen(0, '127.0.0.1', () => resolve(String((taken.address() as { port: number }).port)));
    });
    // Both ports are in use, so the error names the port that the process opens first.
    const refused = await start('gateway', { PORT: port, METRICS_PORT: port });
    expect((await refused.child.exited).code).toBe(1);
    refused.child.forget();
    expect(refused.output).toContain('(METRICS_PORT): the port is taken');
    await new Promise((resolve) => taken.close(resolve));

    const gateway = await start('gateway');
    const writer = await start('writer', { METRICS_PORT: String(await freePort()) });
    for (const process of [gateway, writer]) expect(messages(process)).toContain('ready');
    expect([await gateway.stop(), await writer.stop()]).toEqual([0, 0]);
  });
});
