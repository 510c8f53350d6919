import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { PausedService } from '../../src/proxy/by-use/paused-service.ts';
import { until } from '../support/wait.ts';
import type { Peer } from '../upstream/helpers.ts';
import { Marketplace } from './marketplace.ts';
import { PRICE, Scene } from './scene.ts';

const MAX = 0.5;
let market: Marketplace;
let scene: Scene;

beforeAll(async () => {
  market = await Marketplace.start({});
});
afterEach(() => {
  vi.restoreAllMocks();
  return scene.close();
});
afterAll(() => market.stop());

const open = (script: (peer: Peer) => unknown, options: object = {}): Promise<Scene> =>
  Scene.open(market, script, { max_price: MAX, ...options });
const answer = (bytes: string) => async (peer: Peer) => {
  await peer.takeRequest();
  peer.send(bytes);
};
const WHOLE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n';
const BODY = '\r\n2\r\nok\r\n0\r\n';

describe('a call that is priced by use', () => {
  it.each<[string, string, number, string, string | null]>([
    ['what the head reports', `${WHOLE}X-ACF-Charge: 0.0123\r\n\r\nok`, 0.0123, '0.0123', null],
    ['what a trailer reports', `${CHUNKED}${BODY}X-ACF-Charge: 0.0123\r\n\r\n`, 0.0123, '0.5', 'true'],
    ['nothing, if that is reported', `${WHOLE}x-acf-charge: 0\r\n\r\nok`, 0, '0', null],
    ['what is held, if more is reported', `${WHOLE}X-ACF-Charge: 0.9\r\n\r\nok`, MAX, '0.5', null],
    ['the price, if nothing is reported', `${WHOLE}\r\nok`, PRICE, '0.5', 'true'],
    ['the price, if no amount is reported', `${WHOLE}X-ACF-Charge: 1e-3\r\n\r\nok`, PRICE, '0.5', 'true'],
    [
      'the price, if two are reported',
      `${WHOLE}X-ACF-Charge: 0.2\r\nX-ACF-Charge: 0.2\r\n\r\nok`,
      PRICE,
      '0.5',
      'true',
    ],
    [
      'the report of the head before that of a trailer',
      `${CHUNKED}X-ACF-Charge: 0.2\r\n${BODY}X-ACF-Charge: 0.3\r\n\r\n`,
      0.2,
      '0.2',
      null,
    ],
    [
      'that of a trailer, if the head has no amount',
      `${CHUNKED}X-ACF-Charge: \r\n${BODY}X-ACF-Charge: 0.3\r\n\r\n`,
      0.3,
      '0.5',
      'true',
    ],
  ])('costs %s', async (_what, bytes, amount, stated, held) => {
    scene = await open(answer(bytes));
    const response = await (await scene.call()).response();
    expect(response.body.toString()).toBe('ok');
    expect([response.get('x-acf-amount'), response.get('x-acf-held')]).toEqual([stated, held]);
    expect(response.get('x-acf-balance')).toBe(String((1e6 - Number(stated) * 1e6) / 1e6));
    expect(response.get('x-acf-charge')).toBeNull();
    await scene.expectEnd({ outcome: 'completed', status: 200, amount });
  });

  it('is refunded in full when its service fails, whatever the service reports', async () => {
    scene = await open(answer('HTTP/1.1 500 No\r\nX-ACF-Charge: 0.2\r\nContent-Length: 0\r\n\r\n'));
    const response = await (await scene.call()).response();
    expect([response.status, response.get('x-acf-amount'), response.get('x-acf-held')]).toEqual([500, '0', null]);
    await scene.expectEnd({ outcome: 'refunded:upstream_5xx', status: 500 });
  });

  it('is refunded in full when its service cuts the response', async () => {
    scene = await open(async (peer) => {
      await answer(`${CHUNKED}\r\n2\r\nok\r\n`)(peer);
      peer.socket.end();
    });
    await (await scene.call()).end();
    await scene.expectEnd({ outcome: 'refunded:upstream_cut', status: 200 });
  });

  it('tells its service what it may charge, which the caller may lower as far as the price', async () => {
    const requests: string[] = [];
    const told = async (headers: readonly string[]): Promise<string | undefined> => {
      const { status } = await (await scene.call('GET', { headers })).response();
      return status === 200 ? /x-acf-authorized: (.*)\r\n/.exec(requests.pop() ?? '')?.[1] : String(status);
    };
    scene = await open(async (peer) => {
      for (;;) {
        requests.push(await peer.takeRequest());
        peer.send(`${WHOLE}\r\nok`);
      }
    });
    expect(await told([])).toBe('0.5');
    expect(await told(['X-ACF-Max-Amount: 9', 'X-ACF-Authorized: 8'])).toBe('0.5');
    expect(await told(['X-ACF-Max-Amount: 0.2'])).toBe('0.2');
    expect(await told([`X-ACF-Max-Amount: ${PRICE}`])).toBe('0.1');
    expect(await told(['X-ACF-Max-Amount: 0.09'])).toBe('412');
    expect(await market.balance(scene.buyer)).toMatchObject({ balance: 0.6 });
  });

  it('needs a balance that covers the whole hold, or a lower maximum', async () => {
    scene = await open(answer(`${WHOLE}\r\nok`), { max_price: 2 });
    const refused = await (await scene.call()).response();
    const message = expect.stringMatching(
      /^The balance does not cover what this call may cost\. .* a lower X-ACF-Max-Amount, of 0\.1 or more\./,
    );
    expect([refused.status, refused.json()]).toMatchObject([402, { required: 2, balance: 1, message }]);
    expect((await (await scene.call('GET', { headers: ['X-ACF-Max-Amount: 1'] })).response()).status).toBe(200);
    await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
  });

  it('may report its charge in trailers, unlike a call at a fixed price', async () => {
    let request = '';
    const script = async (peer: Peer) => {
      request = await peer.takeRequest();
      peer.send(`${CHUNKED}${BODY}X-ACF-Charge: 0.01\r\n\r\n`);
    };
    scene = await open(script);
    await (await scene.call()).response();
    expect(request).toContain('\r\nte: trailers\r\nconnection: TE\r\n');
    await scene.close();
    scene = await Scene.open(market, script);
    const response = await (await scene.call()).response();
    expect(request).not.toMatch(/\r\n(te|connection|x-acf-authorized):/);
    expect([response.get('x-acf-amount'), response.get('x-acf-held')]).toEqual(['0.1', null]);
    await scene.expectEnd({ outcome: 'completed', status: 200, amount: PRICE });
  });

  it('costs nothing when it is free, and its service is told what it would have been authorised', async () => {
    let request = '';
    scene = await open(
      async (peer) => {
        request = await peer.takeRequest();
        peer.send(`${WHOLE}X-ACF-Charge: 0.3\r\n\r\nok`);
      },
      { free_calls: 1 },
    );
    const response = await (await scene.call('GET', { headers: ['X-ACF-Max-Amount: 0.4'] })).response();
    expect(request).toContain('x-acf-authorized: 0.4\r\n');
    expect(['x-acf-amount', 'x-acf-free-tier', 'x-acf-held'].map(response.get)).toEqual(['0', 'true', null]);
    await scene.expectEnd({ outcome: 'completed', status: 200 });
  });
});

it('a tool of an MCP server is priced by use, and other messages are free', async () => {
  const told: (string | undefined)[] = [];
  scene = await open(
    async (peer) => {
      for (;;) {
        await peer.until((received) => received.includes('}'));
        told.push(/x-acf-authorized: (.*)\r\n/.exec(peer.received)?.[1]);
        peer.received = '';
        peer.send(`${CHUNKED}Content-Type: application/json\r\n\r\n2\r\n{}\r\n0\r\nX-ACF-Charge: 0.0123\r\n\r\n`);
      }
    },
    {
      protocol: 'mcp',
      max_price: undefined,
      only_operations: true,
      operations: [{ tool: 'ask', price: 0.01, max_price: 0.3 }],
    },
  );
  const call = async (message: object): Promise<(string | null)[]> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, ...message });
    const headers = ['Content-Type: application/json', 'Accept: application/json, text/event-stream'];
    const response = await (await scene.call('POST', { body, headers })).response();
    return [response.get('x-acf-amount'), response.get('x-acf-held')];
  };
  expect(await call({ method: 'tools/list' })).toEqual(['0', null]);
  expect(await call({ method: 'tools/call', params: { name: 'ask' } })).toEqual(['0.3', 'true']);
  expect(told).toEqual([undefined, '0.3']);
  const records = await market.records(scene.buyer);
  expect(records.map(({ amount }) => amount)).toEqual([0.0123, 0]);
});

it('the owner of a listing pays nothing, and its service is told what it could charge another caller', async () => {
  let request = '';
  scene = await open(async (peer) => {
    request = await peer.takeRequest();
    peer.send(`${WHOLE}X-ACF-Charge: 0.2\r\n\r\nok`);
  });
  const response = await (await scene.call('GET', { key: market.provider })).response();
  expect([response.status, response.get('x-acf-amount'), response.get('x-acf-held')]).toEqual([200, '0', null]);
  expect(request).toContain('\r\nx-acf-authorized: 0.5\r\n');
});

it('calls that a stopping gateway cuts, or reads on without a caller, are refunded', async () => {
  const stopping = await Marketplace.start({ DRAIN_SECONDS: '0' });
  try {
    let begun = 0;
    const script = async (peer: Peer): Promise<void> => {
      await peer.takeRequest();
      peer.send(`${CHUNKED}\r\n6\r\n[data]\r\n`);
      begun++;
    };
    scene = await Scene.open(stopping, script, { max_price: MAX });
    const [stays, leaves] = await Promise.all([scene.call(), scene.call()]);
    await Promise.all([stays, leaves].map((caller) => caller.until((received) => received.includes('data'))));
    expect(begun).toBe(2);
    leaves.socket.resetAndDestroy();
    await until(async () => (await stopping.metric('tollgate_responses_open')) === 1);
    await stopping.stopGateway();
    const ended = () => stopping.stores.sql<{ outcome: string; amount: number }[]>`SELECT outcome, amount FROM calls`;
    await until(async () => (await ended()).length === 2);
    for (const call of await ended()) expect(call).toEqual({ outcome: 'refunded:unavailable', amount: 0 });
  } finally {
    await stopping.stop();
  }
});

describe('a caller that leaves before its service reports a charge', () => {
  /** The service sends `first`, the caller leaves, and then the service goes on. */
  async function leaving(first: string, then: (peer: Peer) => unknown, options: object = {}): Promise<void> {
    let peer: Peer | undefined;
    scene = await open(async (connected) => {
      await connected.takeRequest();
      peer = connected;
      if (first !== '') connected.send(first);
    }, options);
    const before = await market.metric('tollgate_responses_open');
    const caller = await scene.call();
    if (first === '') await until(() => peer !== undefined);
    else await caller.until((received) => received.includes('data'));
    caller.socket.resetAndDestroy();
    await until(async () => (await market.metric('tollgate_responses_open')) === before);
    expect(peer?.isGone).toBe(false);
    expect(await market.metric('tollgate_calls_unheard')).toBe(1);
    expect(await market.balance(scene.buyer)).toMatchObject({ balance: 0.5, held: 0.5 });
    await then(peer as Peer);
  }
  const BEGUN = `${CHUNKED}\r\n6\r\n[data]\r\n`;
  const ended = (amount: number, status = 200) => scene.expectEnd({ outcome: 'completed', status, amount });

  it('pays what is reported after it left, as with an SDK that closes at [DONE]', async () => {
    await leaving(BEGUN, (peer) => peer.send('6\r\n[DONE]\r\n0\r\nX-ACF-Charge: 0.25\r\n\r\n'));
    expect(await ended(0.25)).toMatchObject({ response_bytes: 12 });
  });

  it('pays the price for a response that ends without a report', async () => {
    await leaving(BEGUN, (peer) => peer.send('0\r\n\r\n'));
    await ended(PRICE);
  });

  it('pays the whole hold if the service then cuts the response', async () => {
    const holds = () => market.metric('tollgate_calls_unheard_holds_total{bound="cut"}');
    const before = await holds();
    await leaving(BEGUN, (peer) => peer.socket.end());
    await ended(MAX);
    expect([await holds(), await market.metric('tollgate_calls_unheard')]).toEqual([before + 1, 0]);
  });

  it('pays the whole hold if the service does not finish in time', async () => {
    await leaving(BEGUN, () => {}, { timeout_seconds: 1 });
    await ended(MAX);
  });

  it('pays what a response head reports after it left, and the gateway does not read the rest', async () => {
    await leaving('', async (peer) => {
      peer.send(`${CHUNKED}X-ACF-Charge: 0.2\r\n\r\n`);
      await until(() => peer.isGone);
    });
    await ended(0.2, 499);
  });

  it.each([
    ['all that is held', BEGUN, MAX],
    ['the price if the response has a length', 'HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n[data]', PRICE],
  ])(
    'pays %s if it has not sent its whole request, and the gateway leaves the service',
    async (_what, first, amount) => {
      let peer: Peer | undefined;
      scene = await open(async (connected) => {
        peer = connected;
        await connected.until((received) => received.includes('\r\n\r\n'));
        connected.send(first);
      });
      const caller = await scene.call('POST', { headers: ['Transfer-Encoding: chunked'] });
      caller.send('2\r\nhi\r\n');
      // The gateway sends the response in several chunks.
      await caller.until((received) => received.includes('[d'));
      caller.socket.resetAndDestroy();
      await until(() => peer?.isGone);
      await ended(amount);
    },
  );

  it('pays nothing if the service never begins to answer', async () => {
    await leaving('', () => {}, { timeout_seconds: 1 });
    await scene.expectEnd({ outcome: 'refunded:upstream_timeout', status: 499 });
  });

  it('pays nothing if the service then fails', async () => {
    await leaving('', (peer) => peer.send('HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n'));
    await scene.expectEnd({ outcome: 'refunded:upstream_5xx', status: 499 });
  });

  it.each([
    ['what was reported already', `${CHUNKED}X-ACF-Charge: 0.2\r\n\r\n6\r\n[data]\r\n`, 0.2],
    ['the price if no trailers can come', 'HTTP/1.0 200 OK\r\n\r\n[data]', PRICE],
  ])('pays %s, and the gateway leaves the service', async (_what, first, amount) => {
    let peer: Peer | undefined;
    scene = await open(async (connected) => {
      peer = connected;
      await answer(first)(connected);
    });
    const caller = await scene.call();
    await caller.until((received) => received.includes('data'));
    caller.socket.resetAndDestroy();
    await until(() => peer?.isGone === true);
    await ended(amount);
  });
});

it('a caller so slow that its service was paused for 30 seconds pays the whole hold if the service then cuts', async () => {
  let peer: Peer | undefined;
  scene = await open(async (connected) => {
    await connected.takeRequest();
    peer = connected;
    // More than the gateway and the kernel buffer, which may take 32 MiB of a connection (net.ipv4.tcp_rmem).
    connected.send(`${CHUNKED}\r\n4000000\r\n${'x'.repeat(0x4000000)}`);
  });
  let aheadMs = 0;
  vi.spyOn(PausedService, 'clock').mockImplementation(() => performance.now() + aheadMs);
  const paused = vi.spyOn(PausedService.prototype, 'pause');
  const caller = await scene.call();
  caller.socket.pause();
  await until(() => (paused.mock.contexts.at(-1) as PausedService | undefined)?.isPaused);
  aheadMs = 30_000;
  peer?.socket.resetAndDestroy();
  caller.socket.resume();
  await until(() => caller.gone);
  await scene.expectEnd({ outcome: 'completed', status: 200, amount: MAX });
});

describe('X-ACF-Usage-Event: true', () => {
  const STREAM = `${CHUNKED}Content-Type: text/event-stream\r\n`;
  const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;
  const bodyOf = async (headers: readonly string[]): Promise<string> =>
    (await (await scene.call('GET', { headers })).response()).body.toString();

  it.each([
    ['data: 1\n\n', ''],
    ['data: 1\n', '\n\n'],
    [': nothing', '\n\n'],
  ])('ends an event stream %j with the cost of the call', async (text, completion) => {
    scene = await open(answer(`${STREAM}\r\n${chunk(text)}0\r\nX-ACF-Charge: 0.25\r\n\r\n`));
    const body = await bodyOf(['X-ACF-Usage-Event: true']);
    const { usage_id } = await scene.expectEnd({ outcome: 'completed', status: 200, amount: 0.25 });
    const data = { usage_id, amount: 0.25, free_tier: false, balance: 0.75 };
    expect(body.replace(/^: \n/, '')).toBe(`${text}${completion}event: acf.usage\ndata: ${JSON.stringify(data)}\n\n`);
  });

  it('adds nothing if it is not sent, and nothing to a body of another kind', async () => {
    scene = await open(async (peer) => {
      await answer(`${STREAM}\r\n${chunk('data: 1\n\n')}0\r\n\r\n`)(peer);
      await answer(`${CHUNKED}Content-Type: text/plain\r\n\r\n${chunk('1')}0\r\n\r\n`)(peer);
    });
    expect(await bodyOf([])).not.toContain('acf.usage');
    expect(await bodyOf(['X-ACF-Usage-Event: true'])).toBe('1');
  });
});
