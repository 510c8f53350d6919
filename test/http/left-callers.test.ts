import { connect } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { Admission } from '../../src/admission/admission.ts';
import type { TakeResult } from '../../src/admission/commands.ts';
import type { CallerStream, RequestHead } from '../../src/gate/caller-io.ts';
import { Gate } from '../../src/gate/gate.ts';
import { RefillTimes } from '../../src/gate/refill-times.ts';
import { Api } from '../../src/http/api.ts';
import { PagePermits, permitsFor } from '../../src/http/page-permits.ts';
import type { HttpServer } from '../../src/http/server.ts';
import { Authenticator } from '../../src/keys/authenticator.ts';
import type { KeyRecord } from '../../src/keys/caller.ts';
import { newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { KeyCache } from '../../src/keys/key-cache.ts';
import { startExchange } from '../../src/proxy/exchange.ts';
import { type ExchangeOptions, newCounters } from '../../src/proxy/exchange-options.ts';
import { QUIET } from '../support/store.ts';
import { until } from '../support/wait.ts';
import { newServer } from './test-server.ts';

/** The addresses that took a token, and the keys that were looked up in Postgres. */
let taken: string[];
let lookedUp: string[];
let counters: ExchangeOptions['counters'];
let gate: Gate;
let server: HttpServer;
let handled: ((head: RequestHead, stream: CallerStream) => void)[];

beforeEach(async () => {
  [taken, lookedUp, handled] = [[], [], []];
  counters = newCounters();
  const admission = {
    takeForAddress: (address: string, _limit: number, done: (result: TakeResult) => void) => {
      taken.push(address);
      done({ outcome: 'unavailable' });
    },
  } as unknown as Admission;
  const fetchKeys = async (ids: readonly string[]): Promise<KeyRecord[]> => {
    lookedUp.push(...ids);
    return [];
  };
  gate = new Gate({
    authenticator: new Authenticator(new KeyCache({ fetchKeys }), Date.now),
    admission,
    anonymousRateLimit: 60,
    refills: new RefillTimes(Date.now),
    onContradiction: () => {},
  });
  server = newServer({ onCall: (head, stream) => handled.shift()?.(head, stream) });
  await server.listen();
});
afterEach(() => server.close());

/** Sends a request and leaves; the gateway handles the request only after that. */
async function afterLeaving(
  headers: string,
  look: (head: RequestHead, stream: CallerStream) => unknown,
): Promise<void> {
  let late: [RequestHead, CallerStream] | null = null;
  handled.push((...request) => {
    late = request;
  });
  const socket = connect(server.port, '127.0.0.1', () => {
    socket.write(`GET /api/v1/discover HTTP/1.1\r\nHost: gateway.test\r\n${headers}\r\n`);
  });
  const [head, stream] = await until<[RequestHead, CallerStream]>(() => late);
  socket.resetAndDestroy();
  await until(() => stream.aborted);
  await look(head, stream);
}

describe('a caller that left before its address was read', () => {
  const key = `Authorization: Bearer ${newKeyId()}:${newSecret()}\r\n`;

  it.each([
    ['without a key', ''],
    ['with an unknown key', key],
  ])('takes no token and causes no look-up: an API request %s', async (_, headers) => {
    const api = new Api({ gate, permits: new PagePermits(permitsFor(10)), routes: [], log: QUIET });
    await afterLeaving(headers, (head, stream) => api.handle(head, stream));
    expect([taken, lookedUp]).toEqual([[], []]);
  });

  it.each([
    ['without a key', ''],
    ['with an unknown key', key],
  ])('takes no token and causes no look-up: a call %s', async (_, headers) => {
    const options = { gate, counters, log: QUIET } as unknown as ExchangeOptions;
    await afterLeaving(headers, (head, stream) => startExchange(options, head, stream));
    expect([taken, lookedUp]).toEqual([[], []]);
    expect(counters.refused.size).toBe(0);
  });

  it('has no address; a caller whose address was read before it left keeps the address', async () => {
    await afterLeaving('', (_, stream) => expect(stream.address).toBeNull());
    let asked: CallerStream | null = null;
    handled.push((_, stream) => {
      expect(stream.address).toBe('127.0.0.1');
      asked = stream;
    });
    const socket = connect(server.port, '127.0.0.1', () =>
      socket.write('GET / HTTP/1.1\r\nHost: gateway.test\r\n\r\n'),
    );
    const stream = await until<CallerStream>(() => asked);
    socket.resetAndDestroy();
    await until(() => stream.aborted);
    expect(stream.address).toBe('127.0.0.1');
  });
});
