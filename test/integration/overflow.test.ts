import { afterAll, beforeAll, describe, it } from 'vitest';
import { Marketplace } from './marketplace.ts';
import { PRICE, Scene } from './scene.ts';

let market: Marketplace;
beforeAll(async () => {
  market = await Marketplace.start({ MAX_REQUEST_BODY_BYTES: '1000' });
});
afterAll(() => market.stop());

const chunk = (bytes: number): string => `${bytes.toString(16)}\r\n${'x'.repeat(bytes)}\r\n`;

describe('a chunked body that grows beyond the maximum size', () => {
  it('before the service answered gets 413 and is not charged', async () => {
    const scene = await Scene.open(market);
    const caller = await scene.call('POST', { headers: ['Transfer-Encoding: chunked'] });
    caller.send(chunk(600) + chunk(600));
    const response = await caller.response();
    if (response.status !== 413) throw new Error(`status ${response.status}`);
    await scene.expectEnd({ outcome: 'refunded:payload_too_large', status: 413 });
    await scene.close();
  });

  it.each([
    ['is charged, as if the caller had left', {}, PRICE],
    ['is charged all that is held, if it is priced by use', { max_price: 0.5 }, 0.5],
  ])('after the service answered %s', async (_what, options, amount) => {
    const scene = await Scene.open(
      market,
      async (peer) => {
        await peer.until((received) => received.includes('\r\n\r\n'));
        peer.send('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n');
      },
      options,
    );
    const caller = await scene.call('POST', { headers: ['Transfer-Encoding: chunked'] });
    caller.send(chunk(10));
    // In several chunks, because the last bytes of a response that closes its connection come one event-loop turn later.
    await caller.until((received) => received.includes('llo'));
    caller.send(chunk(600) + chunk(600));
    await caller.end();
    await scene.expectEnd({ outcome: 'completed', status: 200, amount });
    await scene.close();
  });
});
