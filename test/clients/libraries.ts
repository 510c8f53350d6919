import { once } from 'node:events';
import { Agent as HttpAgent } from 'node:http';
import { Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import axios, { AxiosError } from 'axios';
import { EventSource } from 'eventsource';
import got, { HTTPError } from 'got';
import { Pool, fetch as undiciFetch } from 'undici';
import { beforeAll, expect, it, vi } from 'vitest';
import type { Key } from '../integration/marketplace.ts';
import { type DemoMarket, textOf } from './demo-market.ts';

const TEXT = 'some words to count';
const COUNTED = { characters: 19, words: 4, lines: 1 };
const EVENTS = '?events=3&interval_ms=20';
const TICKS = [1, 2, 3].map((number) => JSON.stringify({ number, of: 3 }));

/** The `data` of the events named `tick` in the text of a stream. */
const ticksOf = (stream: string): string[] =>
  Array.from(stream.matchAll(/^event: tick\n(?:id: \d+\n)data: (.*)$/gm), ([, data = '']) => data);

/** Keeps each piece as it came. */
const collector = (pieces: Buffer[]): Writable =>
  new Writable({
    write(piece: Buffer, _, done) {
      pieces.push(piece);
      done();
    },
  });

/** HTTP libraries as their users call them. Each reads an answer with its price, an event stream while it runs, and an error. */
export function libraryTests(demo: () => DemoMarket): void {
  let buyer: Key;
  let poor: Key;
  let statistics: string;
  let events: string;
  let headers: Record<string, string>;
  let poorHeaders: Record<string, string>;
  let price: string;

  beforeAll(async () => {
    [buyer, poor] = await Promise.all([demo().market.buyer(1), demo().market.buyer(0)]);
    statistics = demo().proxyUrl('Text Statistics');
    events = demo().proxyUrl('Event Stream') + EVENTS;
    headers = { Authorization: `Bearer ${textOf(buyer)}` };
    poorHeaders = { Authorization: `Bearer ${textOf(poor)}` };
    price = demo().priceOf('Text Statistics');
  });

  it('axios', async () => {
    const found = await axios.get(`${statistics}?text=${encodeURIComponent(TEXT)}`, { headers });
    expect([found.data, found.headers['x-acf-amount']]).toEqual([COUNTED, price]);
    const posted = await axios.post(statistics, TEXT, { headers: { ...headers, 'Content-Type': 'text/plain' } });
    expect([posted.data, posted.headers['x-acf-amount']]).toEqual([COUNTED, price]);
    const stream = await axios.get(events, { headers, responseType: 'stream' });
    expect(ticksOf(await text(stream.data))).toEqual(TICKS);
    const refused = await axios.get(statistics, { headers: poorHeaders }).catch((error: unknown) => error);
    if (!(refused instanceof AxiosError)) throw refused;
    expect(refused.response).toMatchObject({ status: 402, data: { error: 'insufficient_balance', balance: 0 } });
  });

  it('got, over one kept connection', async () => {
    const agent = new HttpAgent({ keepAlive: true, maxSockets: 1 });
    const connect = vi.spyOn(agent, 'createConnection');
    const client = got.extend({ headers, retry: { limit: 0 }, agent: { http: agent } });
    const found = await client(`${statistics}?text=${encodeURIComponent(TEXT)}`, { responseType: 'json' });
    expect([found.body, found.headers['x-acf-amount']]).toEqual([COUNTED, price]);
    const posted = await client.post(statistics, { body: TEXT, responseType: 'json' });
    expect([posted.body, posted.headers['x-acf-amount']]).toEqual([COUNTED, price]);
    expect(ticksOf(await text(client.stream(events)))).toEqual(TICKS);
    const refused = await client(statistics, { headers: poorHeaders, responseType: 'json' }).catch(
      (error: unknown) => error,
    );
    if (!(refused instanceof HTTPError)) throw refused;
    expect(refused.response).toMatchObject({ statusCode: 402, body: { error: 'insufficient_balance', balance: 0 } });
    expect(connect).toHaveBeenCalledTimes(1);
    agent.destroy();
  });

  it('undici: request, stream and fetch, over one kept connection', async () => {
    const pool = new Pool(demo().url, { connections: 1 });
    let connections = 0;
    pool.on('connect', () => {
      connections += 1;
    });
    const path = new URL(statistics).pathname;
    const found = await pool.request({ method: 'GET', path: `${path}?text=${encodeURIComponent(TEXT)}`, headers });
    expect([await found.body.json(), found.headers['x-acf-amount']]).toEqual([COUNTED, price]);
    const posted = await undiciFetch(statistics, { method: 'POST', body: TEXT, headers, dispatcher: pool });
    expect([await posted.json(), posted.headers.get('x-acf-amount')]).toEqual([COUNTED, price]);
    const { pathname, search } = new URL(events);
    const pieces: Buffer[] = [];
    await pool.stream({ method: 'GET', path: pathname + search, headers }, () => collector(pieces));
    expect(ticksOf(Buffer.concat(pieces).toString('utf8'))).toEqual(TICKS);
    const refused = await pool.request({ method: 'GET', path, headers: poorHeaders });
    expect([refused.statusCode, await refused.body.json()]).toMatchObject([402, { error: 'insufficient_balance' }]);
    expect(connections).toBe(1);
    await pool.close();
  });

  it('eventsource, with a fetch that sends the key, reports the status and stops when there is no money', async () => {
    const open = (authorization: Record<string, string>): EventSource =>
      new EventSource(events, {
        fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, ...authorization } }),
      });
    const source = open(headers);
    const ticks: string[] = [];
    source.addEventListener('tick', ({ data }) => ticks.push(data));
    await once(source, 'done');
    // Otherwise it would connect again by itself, and each time would be another paid call.
    source.close();
    expect(ticks).toEqual(TICKS);

    const refused = open(poorHeaders);
    const [error] = await once(refused, 'error').catch((cause: unknown) => [cause]);
    expect([error, refused.readyState]).toMatchObject([{ code: 402 }, EventSource.CLOSED]);
  });

  it('no library pays for a refused call, and each answer has one record', async () => {
    expect(await demo().market.records(poor)).toEqual([]);
    const amounts = (await demo().market.records(buyer)).map(({ amount }) => String(amount)).sort();
    expect(amounts).toEqual([...Array(6).fill(price), ...Array(4).fill(demo().priceOf('Event Stream'))].sort());
  });
}
