import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import { createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { drive, type Job } from '../../bench/load/drive.mjs';
import { runDirOf } from '../../scripts/local/scratch.mjs';

const answer = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';

/** A server that answers every request at once, except while it is stalled: then it answers nothing until `go()`. */
class StallingServer {
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  #stalled: Socket[] | null = null;
  /** For each connection, how many requests it has sent. */
  readonly requests: { count: number }[] = [];

  constructor() {
    this.#server = createServer((socket) => {
      const requests = { count: 0 };
      this.requests.push(requests);
      this.#sockets.add(socket);
      socket.on('error', () => {});
      socket.on('data', () => {
        requests.count += 1;
        if (this.#stalled === null) socket.write(answer);
        else this.#stalled.push(socket);
      });
    });
  }

  async listen(): Promise<number> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  stall(): void {
    this.#stalled = [];
  }

  go(): void {
    const stalled = this.#stalled ?? [];
    this.#stalled = null;
    for (const socket of stalled) socket.write(answer);
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
  }
}

let server: StallingServer;
let dir: string;
beforeEach(() => {
  server = new StallingServer();
  dir = mkdtempSync(path.join(tmpdir(), 'tollgate-open-loop-'));
});
afterEach(() => {
  server.close();
  rmSync(dir, { recursive: true, force: true });
});

const job = async (change: Partial<Job>): Promise<Job> => ({
  protocol: 'http',
  host: '127.0.0.1',
  port: await server.listen(),
  path: '/',
  method: 'GET',
  bodyBytes: 0,
  authFile: null,
  firstAuth: 0,
  bySecond: false,
  connections: 4,
  seconds: 2,
  ratePerSecond: 200,
  expectStatus: null,
  tolerateStatus: null,
  transferBytes: 0,
  transfersPerConnection: 0,
  ...change,
});

const run = (wanted: Job) =>
  drive({ dir, runDir: runDirOf(dir), assertInUse: () => {}, release: async () => {} }, 'open-loop', wanted);

describe('the open loop', () => {
  it('begins calls at the given rate, and uses its connections in turn', async () => {
    const { calls, seconds, errors } = await run(await job({}));
    expect(errors).toEqual({ connect: 0, socket: 0, timeout: 0, status: 0 });
    // Poisson arrivals: 400 ± 20 is one standard deviation.
    expect(calls / seconds).toBeGreaterThan(160);
    expect(calls / seconds).toBeLessThan(240);
    const counts = server.requests.map(({ count }) => count);
    expect(counts).toHaveLength(4);
    // Seen: at most 1. Where the one that was used last is used again, 33 on a busy machine.
    expect(Math.max(...counts) - Math.min(...counts)).toBeLessThan(calls / 40);
  });

  it('counts a server stall for every call that was due during the stall, not only for one call per connection', async () => {
    const wanted = await job({});
    const stallMs = 600;
    const timers = [setTimeout(() => server.stall(), 900), setTimeout(() => server.go(), 900 + stallMs)];
    const { calls, latency } = await run(wanted);
    timers.forEach(clearTimeout);
    // 200/s × 0.6 s = 120 of the 400 calls were due during the stall, so it shows from the 70th percentile on. A closed loop with
    // four connections would have seen four slow calls: one in a hundred.
    expect(calls).toBeGreaterThan(300);
    expect(latency.p90).toBeGreaterThan(200_000);
    expect(latency.max).toBeGreaterThan(400_000);
  });

  it('counts calls that never get an answer as errors', async () => {
    const wanted = await job({ seconds: 1 });
    setTimeout(() => server.stall(), 700);
    const { errors } = await run(wanted);
    expect(errors.timeout).toBeGreaterThan(4);
  }, 15_000);
});
