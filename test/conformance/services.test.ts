import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Key, Marketplace } from '../integration/marketplace.ts';
import { RawCaller, type RawResponse, requestText } from '../integration/raw-caller.ts';
import { type Peer, type RawServer, rawServer } from '../upstream/helpers.ts';
import { CUT, FAILED, type Sees, type ServiceCase } from './services/case.ts';
import { SERVICE_CORPUS } from './services/corpus.ts';

const PRICE = '0.000001';

let market: Marketplace;
let service: RawServer;
let buyer: Key;
let now: ServiceCase;
/** The outcome that the record of each call must have, by usage id. */
const ends = new Map<string, string>();

beforeAll(async () => {
  market = await Marketplace.start({ IDLE_BODY_SECONDS: '1' });
  service = await rawServer((peer) => answer(peer));
  buyer = await market.buyer(1);
});
afterAll(async () => {
  await market.stop();
  await service.close();
});

/** Answers every request on the connection, which the gateway may use again, as the current case says. */
async function answer(peer: Peer): Promise<void> {
  for (;;) {
    await peer.takeRequest();
    const { says, ends: end, early, method } = now;
    if (method === 'POST' && early !== true) await peer.until((received) => received.includes('last'));
    peer.send(says);
    if (end === 'close') peer.socket.end();
    // Only once the answer has been sent: the reset would overtake it.
    else if (end === 'reset') setImmediate(() => peer.socket.resetAndDestroy());
  }
}

async function call({ method = 'GET', early }: ServiceCase): Promise<RawResponse | 'cut'> {
  // Each case has its own listing: the breaker would open for one that fails so often.
  const path = await market.service({ endpoint: service.url, price: Number(PRICE), timeout_seconds: 1 });
  const caller = await RawCaller.connect(market.baseUrl);
  try {
    const headers = method === 'POST' ? ['Content-Length: 9'] : [];
    caller.send(requestText(`${method} ${path}`, { key: buyer, headers }));
    if (method === 'POST') caller.send(early === true ? 'first' : 'firstlast');
    return await wholeOrCut(caller, method === 'HEAD');
  } finally {
    caller.destroy();
  }
}

/** Takes the call's usage id from the head, which arrives even if the body is cut. */
async function wholeOrCut(caller: RawCaller, isHead: boolean): Promise<RawResponse | 'cut'> {
  let usageId = '';
  await caller.until((received) => {
    usageId = /x-acf-usage-id: (\S+)/i.exec(received.toString('latin1'))?.[1] ?? '';
    return usageId !== '';
  });
  ends.set(usageId, '');
  try {
    return await caller.response(isHead);
  } catch (error) {
    if (!caller.gone) throw error;
    return 'cut';
  }
}

function check(seen: RawResponse | 'cut', sees: Sees): void {
  const id = [...ends.keys()].at(-1) as string;
  ends.set(id, sees.money);
  if (seen === 'cut' || sees.status === 'cut') {
    expect(seen === 'cut' ? 'cut' : [seen.status, seen.body.toString()]).toBe(sees.status);
    return;
  }
  expect(seen.status).toBe(sees.status);
  expect(seen.get('x-acf-amount')).toBe(sees.money === 'completed' ? PRICE : '0');
  if ('body' in sees) expect(seen.body.toString()).toBe(sees.body);
  if ('bodyBytes' in sees) expect(seen.body.length).toBe(sees.bodyBytes);
  for (const [name, value] of Object.entries(('headers' in sees && sees.headers) || {})) {
    expect([name, seen.get(name)]).toEqual([name, value]);
  }
}

/** A fault after good bytes of a body is a cut, or a 502 if the good bytes arrived together with the fault. */
const mayBeEither = (one: ServiceCase, seen: RawResponse | 'cut'): Sees =>
  one.sees === CUT && seen !== 'cut' && seen.status === 502 ? FAILED : one.sees;

describe.each(SERVICE_CORPUS)('hostile services: $name', ({ cases }) => {
  it.each(cases)('$name', async (one) => {
    now = one;
    const seen = await call(one);
    check(seen, mayBeEither(one, seen));
  });
});

describe('after all hostile services', () => {
  it('every call has one record that says how it ended, and the books balance', async () => {
    await market.settled();
    const rows = await market.stores.sql<{ id: string; outcome: string; amount: number }[]>`
      SELECT usage_id AS id, outcome, amount::int AS amount FROM calls`;
    expect(new Map(rows.map(({ id, outcome }) => [id, outcome]))).toEqual(ends);
    expect(rows.length).toBe(ends.size);
    for (const { outcome, amount } of rows) expect(amount).toBe(outcome === 'completed' ? 1 : 0);
    expect(await market.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
  });

  it('the gateway still serves, and never reuses a connection on which a service sent too much', async () => {
    now = { name: '', says: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', ends: 'stay', sees: FAILED };
    expect(await call(now)).toMatchObject({ status: 200 });
  });
});

describe('a redirect', () => {
  it.each([301, 302, 303, 307, 308])('%i is passed on unchanged, and never followed', async (status) => {
    const inside = await rawServer();
    const location = `http://127.0.0.1:${inside.port}/latest/meta-data`;
    const says = `HTTP/1.1 ${status} Moved\r\nLocation: ${location}\r\nContent-Length: 0\r\n\r\n`;
    now = { name: '', says, ends: 'stay', sees: FAILED };
    const seen = (await call(now)) as RawResponse;
    expect([seen.status, seen.get('location')]).toEqual([status, location]);
    now = { name: '', says: 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok', ends: 'stay', sees: FAILED };
    await call(now);
    expect(inside.peers).toEqual([]);
    await inside.close();
  });
});
