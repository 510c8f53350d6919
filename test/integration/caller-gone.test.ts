import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/wait.ts';
import type { Peer } from '../upstream/helpers.ts';
import { Marketplace } from './marketplace.ts';
import type { RawCaller } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

let market: Marketplace;
/** One connection per service, and a long Redis timeout, so that callers can leave while Redis is silent. */
let narrow: Marketplace;
let scene: Scene;

beforeAll(async () => {
  market = await Marketplace.start({ MAX_REQUEST_BODY_BYTES: '65536' });
  narrow = await Marketplace.start({ UPSTREAM_MAX_CONNECTIONS: '1', REDIS_COMMAND_TIMEOUT_MS: '5000' });
});
afterEach(() => scene.close());
afterAll(async () => {
  await market.stop();
  await narrow.stop();
});

const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok';
const OPEN = 'tollgate_responses_open';
const ADMITTED = 'tollgate_calls_admitted_total';
/** Ways to leave: as a killed process does, or with a connection reset. */
const leaves: [string, (caller: RawCaller) => void][] = [
  ['closing', (caller) => caller.socket.end()],
  ['resetting', (caller) => caller.socket.resetAndDestroy()],
];

/** Postgres answers questions about keys only after `release()`. */
async function lockKeys() {
  const { sql } = market.stores;
  let release = (): void => {};
  let isLocked = false;
  const holding = sql.begin(async (tx) => {
    await tx`LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE`;
    isLocked = true;
    await new Promise<void>((resolve) => {
      release = resolve;
    });
  });
  await until(() => isLocked);
  const waiting = () => sql`SELECT 1 FROM pg_locks WHERE relation = 'api_keys'::regclass AND NOT granted`;
  return {
    isWaitedFor: () => until(async () => (await waiting()).length > 0),
    release: async () => {
      release();
      await holding;
    },
  };
}

describe('a caller that leaves while its key is looked up', () => {
  it.each(leaves)('is not admitted, %s', async (_how, leave) => {
    scene = await Scene.open(market);
    const admitted = await market.metric(ADMITTED);
    const lock = await lockKeys();
    try {
      const before = await market.metric(OPEN);
      const caller = await scene.call();
      await lock.isWaitedFor();
      leave(caller);
      await until(async () => (await market.metric(OPEN)) === before);
    } finally {
      await lock.release();
    }
    // Asked with the same key: by then the key is known, and the call has ended.
    await scene.expectNothing();
    expect(await market.metric(ADMITTED)).toBe(admitted);
    expect(scene.service.peers).toEqual([]);
  });
});

describe('a caller that leaves before its call was forwarded gets its money back', () => {
  it.each(leaves)('while it is being admitted, %s', async (_how, leave) => {
    scene = await Scene.open(narrow);
    // The key, wallet and script are loaded, so only the admission itself is left.
    await narrow.balance(scene.buyer);
    const admitted = await narrow.metric(ADMITTED);
    narrow.redis.pause();
    try {
      const before = await narrow.metric(OPEN);
      const caller = await scene.call();
      await until(async () => (await narrow.metric(OPEN)) === before + 1);
      leave(caller);
      await until(async () => (await narrow.metric(OPEN)) === before);
    } finally {
      narrow.redis.resume();
    }
    // Redis may hear this test before it hears the gateway again.
    await until(async () => (await narrow.metric(ADMITTED)) === admitted + 1);
    await scene.expectEnd({ outcome: 'refunded:caller_gone', status: 499 });
    expect(scene.service.peers).toEqual([]);
  });

  it.each(leaves)('while it waits for a connection, %s', async (_how, leave) => {
    scene = await Scene.open(narrow);
    const first = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    const second = await scene.withAnotherBuyer();
    const caller = await second.call();
    await until(async () => (await narrow.balance(second.buyer)).held === PRICE);
    leave(caller);
    await second.expectEnd({ outcome: 'refunded:caller_gone', status: 499 });
    peer.send(OK);
    expect((await first.response()).status).toBe(200);
    // The call was taken out of the queue, so the service never sees it.
    await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
    expect(peer.received).toBe('');
    expect(scene.service.peers).toHaveLength(1);
  });

  it.each([
    ['a length', ['Content-Length: 1000'], 'x'.repeat(100)],
    ['chunks', ['Transfer-Encoding: chunked'], '64\r\n'.concat('x'.repeat(100), '\r\n')],
  ])('while it uploads with %s', async (_how, headers, part) => {
    scene = await Scene.open(market);
    const caller = await scene.call('POST', { headers });
    caller.send(part);
    const peer = await scene.service.peer(0);
    await peer.until((received) => received.includes('x'.repeat(100)));
    caller.destroy();
    await peer.gone();
    const { request_bytes } = await scene.expectEnd({ outcome: 'refunded:caller_gone', status: 499 });
    expect(request_bytes).toBe(100);
    expect(peer.received).not.toMatch(/\r\n0\r\n/);
  });
});

describe('a caller that leaves after its call was forwarded has paid, because the service did the work', () => {
  it.each(leaves)('if it leaves before the response, %s', async (_how, leave) => {
    scene = await Scene.open(market);
    const caller = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    leave(caller);
    // No caller is left, so the gateway closes the connection and the service may stop.
    await peer.gone();
    await scene.expectEnd({ outcome: 'completed', status: 499, amount: PRICE });
  });

  it('if it leaves before the response, after a whole upload was forwarded', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call('POST', { body: 'whole' });
    const peer = await scene.service.peer(0);
    await peer.until((received) => received.endsWith('whole'));
    caller.destroy();
    await peer.gone();
    const { request_bytes } = await scene.expectEnd({ outcome: 'completed', status: 499, amount: PRICE });
    expect(request_bytes).toBe(5);
  });

  it('if it leaves between head and body of the response', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    peer.send('HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n');
    caller.destroy();
    await peer.gone();
    const records = await market.records(scene.buyer);
    expect(records.map(({ outcome, amount }) => [outcome, amount])).toEqual([['completed', PRICE]]);
  });

  it.each<[string, (peer: Peer) => void]>([
    ['with a length', (peer) => peer.send(`HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n${'x'.repeat(100)}`)],
    [
      'in chunks',
      (peer) => peer.send(`HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n64\r\n${'x'.repeat(100)}\r\n`),
    ],
  ])('if it leaves in the middle of a response %s', async (_how, begin) => {
    scene = await Scene.open(market);
    const caller = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    begin(peer);
    await caller.head();
    await caller.until((received) => received.length >= 100);
    caller.destroy();
    await peer.gone();
    const { response_bytes } = await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
    expect(response_bytes).toBe(100);
  });

  it('but not if the response was a 5xx', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    peer.send('HTTP/1.1 503 Sorry\r\nContent-Length: 1000\r\n\r\nsorry');
    expect((await caller.head()).get('x-acf-amount')).toBe('0');
    caller.destroy();
    await peer.gone();
    await scene.expectEnd({ outcome: 'refunded:upstream_5xx', status: 503 });
  });
});

describe('a service with too many calls', () => {
  it('makes the gateway answer 503 upstream_busy with Retry-After and refund the call', async () => {
    scene = await Scene.open(narrow);
    const first = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    const second = await scene.withAnotherBuyer();
    const refused = await (await second.call()).response();
    expect(refused.status).toBe(503);
    expect(refused.json()).toMatchObject({ error: 'upstream_busy', status: 503 });
    expect(refused.get('retry-after')).toMatch(/^\d+$/);
    expect([refused.get('x-acf-amount'), refused.get('x-acf-balance')]).toEqual(['0', '1']);
    await second.expectEnd({ outcome: 'refunded:upstream_busy', status: 503 });
    peer.send(OK);
    expect((await first.response()).status).toBe(200);
    await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
  });
});

describe('a body that is too large', () => {
  it('is refused before anything is forwarded when its length says so', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call('POST', { headers: ['Content-Length: 65537'] });
    const response = await caller.response();
    expect([response.status, response.json<{ error: string }>().error]).toEqual([413, 'payload_too_large']);
    expect(response.get('x-acf-amount')).toBeNull();
    await scene.expectNothing();
    expect(scene.service.peers).toEqual([]);
  });

  it('is cut off when it grows too large in chunks, and the call is refunded', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call('POST', { headers: ['Transfer-Encoding: chunked'] });
    const piece = `4000\r\n${'x'.repeat(0x4000)}\r\n`;
    caller.send(piece);
    const peer = await scene.service.peer(0);
    await peer.until((received) => received.length > 0x4000);
    caller.send(piece.repeat(4));
    const response = await caller.response();
    expect([response.status, response.json<{ error: string }>().error]).toEqual([413, 'payload_too_large']);
    expect([response.get('x-acf-amount'), response.get('x-acf-balance')]).toEqual(['0', '1']);
    await peer.gone();
    await scene.expectEnd({ outcome: 'refunded:payload_too_large', status: 413 });
  });

  it('of exactly the maximum size passes, with a length and in chunks', async () => {
    scene = await Scene.open(market, async (peer) => {
      await peer.until((received) => received.replace(/[^x]/g, '').length >= 65_536);
      peer.send('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok');
    });
    const known = await scene.call('POST', { body: 'x'.repeat(65_536) });
    expect((await known.response()).status).toBe(200);
    const chunked = await scene.call('POST', { headers: ['Transfer-Encoding: chunked'] });
    chunked.send(`10000\r\n${'x'.repeat(65_536)}\r\n0\r\n\r\n`);
    expect((await chunked.response()).status).toBe(200);
  });
});
