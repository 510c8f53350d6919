import { afterAll, beforeAll, expect, it } from 'vitest';
import type { CallerStream } from '../../src/gate/caller-io.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { RawCaller } from '../integration/raw-caller.ts';
import { until } from '../support/wait.ts';
import { newServer } from './test-server.ts';

/** A window of the pace is five of these. In each, 10 KiB must arrive. */
const TICK_MS = 40;

let server: HttpServer;
let baseUrl: string;
const streams = new Map<string, CallerStream>();
/** Paths in the order in which their bodies were found too slow. */
const slow: string[] = [];
const received = new Map<string, number>();

beforeAll(async () => {
  server = newServer({
    tickMs: TICK_MS,
    onCall: ({ path }, stream) => {
      streams.set(path, stream);
      stream.attach({
        onCallerBody(chunk) {
          received.set(path, (received.get(path) ?? 0) + chunk.length);
        },
        onCallerGone() {},
        onCallerWritable() {},
        onCallerTooSlow() {
          slow.push(path);
          stream.respond(408, '', 'slow');
        },
      });
      if (path === '/paused') stream.pauseBody();
    },
  });
  baseUrl = `http://127.0.0.1:${await server.listen()}`;
});
afterAll(() => server.close());

/** @returns a caller that sends this many bytes in each tick */
async function upload(path: string, bytes: number): Promise<RawCaller> {
  const caller = await RawCaller.connect(baseUrl);
  caller.send(`POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n`);
  const sending = setInterval(() => caller.send(Buffer.alloc(bytes)), TICK_MS);
  caller.socket.once('close', () => clearInterval(sending));
  return caller;
}

it('a body that arrives too slowly is detected, however evenly its bytes come; a faster or paused body is not', async () => {
  const callers = await Promise.all([
    upload('/nothing', 0),
    upload('/dripping', 500),
    upload('/steady', 6_000),
    upload('/paused', 500),
  ]);
  const [nothing, dripping, steady, paused] = callers as [RawCaller, RawCaller, RawCaller, RawCaller];
  for (const caller of [nothing, dripping]) {
    const response = await caller.response();
    expect([response.status, response.get('connection')]).toEqual([408, 'close']);
  }
  // Three more windows.
  const before = received.get('/steady') as number;
  await until(() => (received.get('/steady') as number) > before + 90_000);
  expect(slow.sort()).toEqual(['/dripping', '/nothing']);
  // The caller had to wait for the service. Now it has nothing to wait for, and still drips.
  streams.get('/paused')?.resumeBody();
  expect((await paused.response()).status).toBe(408);
  for (const caller of [...callers, steady]) caller.destroy();
});
