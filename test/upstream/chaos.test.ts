import { afterAll, beforeAll, expect, test } from 'vitest';
import { Exchange, eventually, newClient, type Peer, patternBytes, type RawServer, rawServer } from './helpers.ts';

/*
 * Many calls at once, all at random (seeded): the upstream cuts, resets, stalls, answers early and sends surplus octets; the
 * callers pause and give up. Whatever happens, every call ends exactly once, and ends cleanly only with a complete response.
 */

type Random = (below: number) => number;

function seeded(seed: number): Random {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

const BODY = patternBytes(150_000);

/** The paths for which the server has sent a complete response: only these calls may end cleanly. */
const wholeResponses = new Set<string>();

async function misbehave(peer: Peer): Promise<void> {
  for (;;) {
    await peer.until((received) => received.includes('\r\n\r\n'));
    const [method, path] = peer.received.split(' ', 2) as [string, string];
    const random = seeded(Number(path.slice(1)));
    const isEarly = method === 'POST' && random(3) === 0;
    if (!isEarly) await takeRequest(peer, method);
    const body = BODY.subarray(0, random(4) === 0 ? random(3) : random(BODY.length));
    const wire = randomResponse(random, body);
    const fault = random(6);
    if (fault === 0) {
      peer.send(wire.subarray(0, random(wire.length)));
      if (random(2) === 0) peer.socket.end();
      else peer.socket.resetAndDestroy();
      return;
    }
    for (let at = 0; at < wire.length; ) {
      const size = 1 + random(40_000);
      peer.send(wire.subarray(at, at + size));
      at += size;
      // Before the next turn, in which the call may end.
      if (at >= wire.length) wholeResponses.add(path);
      if (random(2) === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    // The surplus does not look like a response: one that arrives after the next request could not be told from the answer to it.
    if (fault === 1) peer.send('surplus');
    if (fault === 2) return void peer.socket.end();
    if (isEarly) await takeRequest(peer, method);
  }
}

async function takeRequest(peer: Peer, method: string): Promise<void> {
  const ending = method === 'POST' ? '!\r\n0\r\n\r\n' : '\r\n\r\n';
  await peer.until((received) => received.includes(ending));
  peer.received = peer.received.slice(peer.received.indexOf(ending) + ending.length);
}

function randomResponse(random: Random, body: Buffer): Buffer {
  const isChunked = random(2) === 0;
  const interim = random(5) === 0 ? 'HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n' : '';
  const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${body.length}`;
  const head = Buffer.from(`${interim}HTTP/1.1 200 OK\r\nX-Length: ${body.length}\r\n${framing}\r\n\r\n`);
  return Buffer.concat(isChunked ? [head, ...randomChunks(random, body)] : [head, body]);
}

function randomChunks(random: Random, body: Buffer): Buffer[] {
  const parts: Buffer[] = [];
  for (let at = 0; at < body.length; ) {
    const size = Math.min(1 + random(20_000), body.length - at);
    parts.push(Buffer.from(`${size.toString(16)}\r\n`), body.subarray(at, at + size), Buffer.from('\r\n'));
    at += size;
  }
  return [...parts, Buffer.from('0\r\n\r\n')];
}

let server: RawServer;
beforeAll(async () => {
  server = await rawServer(misbehave);
});
afterAll(() => server.close());

test.each([1, 2, 3, 4])(
  'every call ends exactly once, and successfully only with a complete response (seed %i)',
  async (seed) => {
    const client = newClient({ maxConnectionsPerOrigin: 20, maxWaitingPerOrigin: 1000, maxWaitMs: 60_000 });
    const random = seeded(seed);
    const calls = Array.from({ length: 400 }, (_, index) => startCall(client, random, seed * 1000 + index));
    const outcomes = await Promise.all(calls.map((call) => call.outcome()));
    for (const call of calls) call.check();
    expect(new Set(outcomes)).toEqual(new Set(['end', 'error', 'destroyed']));
    await client.close();
    await eventually(() => client.stats().open === 0);
    for (const call of calls) call.check();
  },
);

function startCall(client: Parameters<typeof newExchange>[0], random: Random, number: number) {
  const exchange = newExchange(client, random, number);
  const destroyAt = random(8) === 0 ? random(4) : -1;
  const pauseEvery = 1 + random(4);
  let events = 0;
  let destroyedAfter = -1;
  exchange.onChunk = (chunk) => {
    exchange.chunks.push(Buffer.from(chunk));
    if (++events === destroyAt) {
      exchange.call.destroy();
      destroyedAfter = exchange.events.length;
      exchange.ended.resolve();
    } else if (events % pauseEvery === 0) {
      exchange.call.pause();
      setImmediate(() => exchange.call.resume());
    }
  };
  if (destroyAt === 0) {
    setImmediate(() => {
      if (exchange.events.some((event) => event === 'end' || event === 'error')) return;
      exchange.call.destroy();
      destroyedAfter = exchange.events.length;
      exchange.ended.resolve();
    });
  }
  return {
    async outcome(): Promise<string> {
      await exchange.ended.promise;
      return destroyedAfter >= 0 ? 'destroyed' : exchange.events.includes('end') ? 'end' : 'error';
    },
    check(): void {
      const ends = exchange.events.filter((event) => event === 'end' || event === 'error');
      if (destroyedAfter >= 0) {
        expect(ends).toEqual([]);
        expect(exchange.events.length).toBe(destroyedAfter);
        return;
      }
      expect(ends.length).toBe(1);
      expect(exchange.events.at(-1)).toBe(ends[0]);
      if (ends[0] !== 'end') return;
      const { head } = exchange;
      const length = Number(head?.headers[(head.headers.indexOf('X-Length') ?? 0) + 1]);
      expect(Buffer.concat(exchange.chunks).equals(BODY.subarray(0, length))).toBe(true);
      expect(wholeResponses.has(`/${number}`)).toBe(true);
    },
  };
}

function newExchange(client: ReturnType<typeof newClient>, random: Random, number: number): Exchange {
  const isUpload = random(3) === 0;
  const exchange = new Exchange(client, server.url, {
    path: `/${number}`,
    account: `a${number % 4}`,
    method: isUpload ? 'POST' : 'GET',
    bodyLength: isUpload ? -1 : 0,
  });
  if (isUpload) {
    exchange.call.write(BODY.subarray(0, random(100_000)));
    setImmediate(() => {
      exchange.call.write(Buffer.from('!'));
      exchange.call.end();
    });
  }
  return exchange;
}
