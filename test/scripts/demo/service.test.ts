import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isOk } from '../../../scripts/local/api.mjs';
import { projectDir } from '../../../scripts/local/dependencies.mjs';
import { freePort } from '../../../scripts/local/ports.mjs';
import { type OwnedProcess, pollUntil, signalProcess, spawnOwned } from '../../../scripts/local/processes.mjs';
import { scratchDir, scratchRunDir } from '../../support/stores.ts';

// The service runs in a process of its own, as `npm start` runs it. An uncaught exception would end that process.
let service: OwnedProcess;
let port: number;
const logFile = path.join(scratchDir(), `demo-${randomUUID()}.log`);

beforeAll(async () => {
  port = await freePort();
  service = spawnOwned({
    runDir: scratchRunDir(),
    name: `demo-${randomUUID()}`,
    command: process.execPath,
    args: ['scripts/demo/service.mjs', String(port)],
    cwd: projectDir,
    logFile,
  });
  expect(await pollUntil(() => isOk(`http://127.0.0.1:${port}/healthz`), { timeoutMs: 10_000 })).toBe(true);
});
afterAll(async () => {
  signalProcess(service.record, 'SIGTERM');
  await service.exited;
  service.forget();
});

/** A connection to the service, with everything that came back on it. */
class Caller {
  readonly socket = net.connect(port, '127.0.0.1');
  text = '';
  readonly #closed: Promise<unknown>;

  constructor() {
    this.#closed = new Promise((resolve) => this.socket.once('close', resolve));
    // The service may reset the connection. The tests look at what came before that.
    this.socket.on('error', () => {});
    this.socket.on('data', (chunk) => {
      this.text += chunk.toString('latin1');
    });
  }

  async send(bytes: string | Buffer): Promise<void> {
    if (!this.socket.write(bytes) && !this.socket.destroyed) {
      await Promise.race([once(this.socket, 'drain').catch(() => {}), this.#closed]);
    }
  }

  /** @returns whether what came back matches; false if the connection ends, or ten seconds pass, before it does */
  async reads(pattern: RegExp): Promise<boolean> {
    await pollUntil(() => pattern.test(this.text) || this.socket.closed, { timeoutMs: 10_000, intervalMs: 2 });
    return pattern.test(this.text);
  }

  /** Ends the connection with a RST, as when the caller is killed. */
  async reset(): Promise<void> {
    this.socket.resetAndDestroy();
    await this.#closed;
  }
}

async function expectServing(): Promise<void> {
  const healthy = await isOk(`http://127.0.0.1:${port}/healthz`);
  expect({ healthy, exited: service.hasExited(), log: readFileSync(logFile, 'utf8') }).toEqual({
    healthy: true,
    exited: false,
    log: '',
  });
}

const MIB = Buffer.alloc(1024 * 1024, 'x');
const WHOLE_JSON = /\r\n\r\n\{[\s\S]*\}\n$/;

describe('the demo service', () => {
  it('answers a body that is too long with 413, and serves the next request on that connection', async () => {
    const caller = new Caller();
    await caller.send(`POST /echo/hello HTTP/1.1\r\nHost: demo\r\nContent-Length: ${5 * MIB.length}\r\n\r\n`);
    for (let i = 0; i < 5; i++) await caller.send(MIB);
    expect(await caller.reads(WHOLE_JSON)).toBe(true);
    expect(caller.text).toMatch(/^HTTP\/1\.1 413 /);
    caller.text = '';
    await caller.send('GET /echo/hello HTTP/1.1\r\nHost: demo\r\n\r\n');
    expect(await caller.reads(WHOLE_JSON)).toBe(true);
    expect(caller.text).toMatch(/^HTTP\/1\.1 200 /);
    await caller.reset();
    await expectServing();
  });

  it('does not wait for the end of a body that is too long', async () => {
    const caller = new Caller();
    await caller.send('POST /text HTTP/1.1\r\nHost: demo\r\nTransfer-Encoding: chunked\r\n\r\n');
    const chunk = Buffer.concat([Buffer.from(`${MIB.length.toString(16)}\r\n`), MIB, Buffer.from('\r\n')]);
    for (let i = 0; i < 2; i++) await caller.send(chunk);
    expect(await caller.reads(/^HTTP\/1\.1 413 /)).toBe(true);
    await caller.send(chunk);
    await caller.reset();
    await expectServing();
  });

  it('accepts a body of exactly the maximum length', async () => {
    const caller = new Caller();
    await caller.send(`POST /text HTTP/1.1\r\nHost: demo\r\nContent-Length: ${MIB.length}\r\n\r\n`);
    await caller.send(MIB);
    expect(await caller.reads(WHOLE_JSON)).toBe(true);
    expect(caller.text).toContain(`"characters": ${MIB.length}`);
    await caller.reset();
  });

  it.each([
    ['//', 404],
    ['//[', 404],
    ['http://[', 400],
    ['nothing', 400],
    ['/%', 404],
    ['/constructor', 404],
    ['/__proto__/x', 404],
    ['/slow?ms=-1', 200],
    ['/text?text=%E0%A4%A', 200],
    ['/events?events=-5&interval_ms=1e400', 200],
  ])('answers a request for the target %s', async (target, status) => {
    const caller = new Caller();
    await caller.send(`GET ${target} HTTP/1.1\r\nHost: demo\r\n\r\n`);
    expect(await caller.reads(/^HTTP\/1\.1 \d{3} /)).toBe(true);
    expect(caller.text).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    await caller.reset();
    await expectServing();
  });

  it.each([
    ['in the middle of events', 'GET /events?interval_ms=5 HTTP/1.1\r\nHost: demo\r\n\r\n', /event: tick/],
    ['in the middle of a body', 'POST /echo HTTP/1.1\r\nHost: demo\r\nContent-Length: 9\r\n\r\nhalf', /^/],
    ['while it waits', 'GET /slow?ms=20 HTTP/1.1\r\nHost: demo\r\n\r\n', /^/],
    ['after its answer', 'GET /flaky HTTP/1.1\r\nHost: demo\r\n\r\n', /\}\n$/],
  ])('continues to serve when its caller leaves %s', async (_, request, pattern) => {
    const callers = Array.from({ length: 20 }, () => new Caller());
    await Promise.all(
      callers.map(async (caller) => {
        await caller.send(request);
        expect(await caller.reads(pattern)).toBe(true);
        await caller.reset();
      }),
    );
    await expectServing();
  });

  it('survives every request, even if the caller leaves at any time', async () => {
    const target = fc.oneof(
      fc.constantFrom(
        '/echo/a?b=c',
        '/text?text=%',
        '/events?events=3&interval_ms=1',
        '/slow?ms=3',
        '/flaky',
        '/healthz',
      ),
      fc.constantFrom('//', '//[', 'http://[', 'http://a:b@[::1/', '*', '/\u00ff', '/toString', '/?__proto__=1', ''),
      fc
        .tuple(fc.constantFrom('slow?ms', 'events?events', 'events?interval_ms', 'text?text'), fc.string())
        .map(([name, value]) => `/${name}=${value}`),
    );
    const framing = fc.constantFrom(
      { head: '', body: '' },
      { head: 'Content-Length: 5\r\n', body: 'hello' },
      { head: 'Content-Length: 5\r\n', body: 'he' },
      { head: 'Content-Length: 3145728\r\n', body: 'x'.repeat(3_145_728) },
      { head: 'Content-Length: 9999999999\r\n', body: 'x'.repeat(1_100_000) },
      { head: 'Content-Length: -1\r\n', body: 'x' },
      { head: 'Transfer-Encoding: chunked\r\n', body: '3\r\nabc\r\n0\r\n\r\n' },
      { head: 'Transfer-Encoding: chunked\r\n', body: 'zz\r\nabc' },
      { head: 'Transfer-Encoding: chunked\r\n', body: `200000\r\n${'x'.repeat(0x200000)}` },
      { head: 'Expect: 100-continue\r\nContent-Length: 2000000\r\n', body: 'x' },
      { head: 'Expect: something\r\n', body: '' },
      { head: 'Upgrade: websocket\r\nConnection: upgrade\r\n', body: '\0\0' },
      { head: `X: ${'x'.repeat(20_000)}\r\n`, body: '' },
    );
    const method = fc.constantFrom(
      'GET',
      'POST',
      'HEAD',
      'PUT',
      'DELETE',
      'OPTIONS',
      'CONNECT',
      'TRACE',
      'M-SEARCH',
      'BREW',
    );
    const leaving = fc.constantFrom('at once', 'half', 'at the first byte', 'after the next request');
    const hostile = fc.record({ method, target, framing, leaving });
    await fc.assert(
      fc.asyncProperty(fc.array(hostile, { minLength: 1, maxLength: 8 }), async (requests) => {
        await Promise.all(requests.map(attack));
        await expectServing();
      }),
      { numRuns: 60 },
    );
  });
});

type Hostile = {
  readonly method: string;
  readonly target: string;
  readonly framing: { readonly head: string; readonly body: string };
  readonly leaving: string;
};

async function attack({ method, target, framing, leaving }: Hostile): Promise<void> {
  const caller = new Caller();
  await once(caller.socket, 'connect');
  const request = `${method} ${target} HTTP/1.1\r\nHost: demo\r\n${framing.head}\r\n${framing.body}`;
  await caller.send(leaving === 'half' ? request.slice(0, request.length / 2) : request);
  if (leaving === 'after the next request')
    await caller.send('GET /healthz HTTP/1.1\r\nHost: demo\r\nConnection: close\r\n\r\n');
  // Some requests get no answer, because they are never complete.
  if (leaving === 'at the first byte') await pollUntil(() => caller.text !== '', { timeoutMs: 50, intervalMs: 2 });
  await caller.reset();
}
