import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { Marketplace } from './marketplace.ts';
import { RawCaller } from './raw-caller.ts';
import { PRICE, Scene } from './scene.ts';

let market: Marketplace;
let scene: Scene;

beforeAll(async () => {
  market = await Marketplace.start();
});
afterEach(() => scene.close());
afterAll(() => market.stop());

// A half-closed connection is a caller that left: the gateway does not keep answering into it.
describe('a caller that closes its sending half of the connection', () => {
  it('in the middle of its request counts as gone, and is refunded', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call('POST', { headers: ['Content-Length: 10'] });
    const peer = await scene.service.peer(0);
    caller.socket.end('half');
    expect((await caller.end()).toString()).toBe('');
    await peer.gone();
    await scene.expectEnd({ outcome: 'refunded:caller_gone', status: 499 });
  });

  it('after its request counts as gone, but pays, because the service did the work', async () => {
    scene = await Scene.open(market);
    const caller = await scene.call();
    const peer = await scene.service.peer(0);
    await peer.takeRequest();
    caller.socket.end();
    await caller.end();
    await peer.gone();
    await scene.expectEnd({ outcome: 'completed', status: 499, amount: PRICE });
  });

  it('before any request costs nothing', async () => {
    scene = await Scene.open(market);
    const caller = await RawCaller.connect(market.baseUrl);
    caller.socket.end('GET / HTTP/1.1\r\nHost: x\r\n');
    expect((await caller.end()).toString()).toBe('');
    await scene.expectNothing();
  });
});
