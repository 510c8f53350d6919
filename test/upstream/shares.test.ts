import { afterEach, beforeEach, expect, test } from 'vitest';
import { Destination, parseEndpoint, type UpstreamClient } from '../../src/upstream/index.ts';
import { Exchange, eventually, newClient, OK, type RawServer, rawServer } from './helpers.ts';

// With 32 connections, the last 8 are for accounts that have fewer than 8, and fewer than three times what is free.
const CONNECTIONS = 32;

let server: RawServer;
let client: UpstreamClient;
let destination: Destination;
/** Requests in the order in which they reached the server, as their paths. */
let arrived: string[];

beforeEach(async () => {
  arrived = [];
  server = await rawServer(async (peer) => {
    for (;;) arrived.push((await peer.takeRequest()).split(' ')[1] as string);
  });
  destination = new Destination(parseEndpoint(server.url).origin);
  client = newClient({ maxConnectionsPerOrigin: CONNECTIONS, maxWaitingPerOrigin: 64 });
});
afterEach(async () => {
  // First, because the client waits for its calls, and nobody answers most of them.
  await server.close();
  await client.close();
});

const call = (account: string): Exchange =>
  new Exchange(client, server.url, { destination, account, path: `/${account}` });
const calls = (account: string, count: number): Exchange[] => Array.from({ length: count }, () => call(account));
const count = (account: string): number => arrived.filter((path) => path === `/${account}`).length;

test('one account leaves a quarter of the connections to others, who get connections at once', async () => {
  const own = calls('a', 50);
  await eventually(() => count('a') === 24);
  expect(client.stats()).toMatchObject({ open: 24, waiting: 16 });
  expect(await own[49]?.outcome()).toBe('busy');
  expect([destination.isFullFor('a'), destination.isFullFor('b')]).toEqual([true, false]);
  calls('b', 5);
  calls('c', 3);
  await eventually(() => count('b') + count('c') === 8);
  expect(client.stats()).toMatchObject({ open: 32, waiting: 16 });
  for (const exchange of own) exchange.call.destroy();
});

test('an account above its share keeps its connections, and gets no more while accounts below their share wait', async () => {
  calls('a', 30);
  calls('b', 8);
  calls('c', 3);
  calls('d', 1);
  await eventually(() => arrived.length === 32);
  expect(['a', 'b', 'c', 'd'].map(count)).toEqual([24, 6, 2, 0]);
  // The first 24 peers carry calls of a. What they leave goes to those that have least, in turn, and then to b.
  let peer = 0;
  const leave = (): void => server.peers[peer++]?.send(OK);
  for (const next of ['/c', '/d']) {
    leave();
    await eventually(() => arrived.at(-1) === next);
  }
  for (let i = 0; i < 4; i++) leave();
  await eventually(() => count('b') === 8);
  // Six of a wait, and nobody else. They get nothing until a quarter is free again.
  for (let i = 0; i < 6; i++) leave();
  await eventually(() => client.stats().idle === 8);
  expect([count('a'), client.stats().waiting]).toEqual([24, 6]);
  leave();
  await eventually(() => count('a') === 25);
});

test('waiting accounts take turns, however many calls each has in the line', async () => {
  const others = Array.from({ length: 32 }, (_, i) => call(`other${i}`));
  await eventually(() => arrived.length === 32);
  calls('x', 3);
  calls('y', 2);
  calls('z', 1);
  expect(client.stats().waiting).toBe(6);
  for (let i = 0; i < 6; i++) {
    server.peers[i]?.send(OK);
    await eventually(() => arrived.length === 33 + i);
  }
  expect(arrived.slice(32)).toEqual(['/x', '/y', '/z', '/x', '/y', '/x']);
  for (const exchange of others) exchange.call.destroy();
});

test('a call that is given up or cut gives back its share, whether it waits, connects or is under way', async () => {
  const own = calls('a', 24);
  // Given up while they connect.
  for (const exchange of own.slice(0, 4)) exchange.call.destroy();
  calls('a', 4);
  await eventually(() => count('a') === 24);
  const below = calls('b', 9);
  await eventually(() => count('b') === 6);
  expect(client.stats().waiting).toBe(3);
  // One of b under way is given up: the first in line gets a connection.
  below[0]?.call.destroy();
  await eventually(() => count('b') === 7);
  const last = call('b');
  expect(client.stats().waiting).toBe(3);
  last.call.destroy();
  expect(client.stats().waiting).toBe(2);
  // All of a are cut by the service. Then anybody may have the connections again.
  for (const peer of server.peers.slice(0, 24)) peer.socket.destroy();
  for (const exchange of own.slice(4)) expect(await exchange.outcome()).toBe('reset');
  await eventually(() => client.stats().open === 8);
  calls('c', 16);
  await eventually(() => count('c') === 16);
});

test("one account leaves a quarter of the process's connections to others, however many listings it calls", async () => {
  await client.close();
  client = newClient({ maxConnectionsPerOrigin: 16, maxConnections: CONNECTIONS, maxWaitMs: 100 });
  const listing = (number: number): Destination => new Destination(destination.origin, `listing${number}`);
  const start = (account: string, to: Destination): Exchange =>
    new Exchange(client, server.url, { destination: to, account, path: `/${account}` });
  const own = Array.from({ length: 40 }, (_, i) => start('a', listing(i % 5)));
  await eventually(() => count('a') === 24);
  expect(client.stats()).toMatchObject({ open: 24, waiting: 16 });
  expect(await start('a', listing(9)).outcome()).toBe('busy');
  for (let i = 0; i < 4; i++) start('b', listing(i));
  for (let i = 4; i < 6; i++) start('b', listing(i));
  await eventually(() => count('b') === 6);
  // One of the account's own connections, given back, serves none of its waiting calls: a quarter must be free again.
  server.peers[0]?.send(OK);
  expect(await own[0]?.outcome()).toBe(200);
  for (const exchange of own.slice(24)) expect(await exchange.outcome()).toBe('busy');
  expect(count('a')).toBe(24);
  expect(client.stats()).toMatchObject({ waiting: 0, active: 29, idle: 1 });
});

test('a waiting call is served or fails as busy in time, even if its listing has no connection and its account may not open one', async () => {
  await client.close();
  client = newClient({ maxConnectionsPerOrigin: 1, maxConnections: CONNECTIONS, maxWaitMs: 150 });
  const listing = new Destination(destination.origin, 'small');
  const start = (account: string, to: Destination): Exchange =>
    new Exchange(client, server.url, { destination: to, account, path: `/${account}` });
  const first = start('a', listing);
  await eventually(() => count('a') === 1);
  const waiting = [start('a', listing), start('a', listing)];
  // The process is nearly full now, and the account holds more than three times what is free.
  for (let i = 0; i < 23; i++) start('a', new Destination(destination.origin, `own${i}`));
  for (let i = 0; i < 8; i++) start(`b${i}`, new Destination(destination.origin, `other${i}`));
  await eventually(() => arrived.length === 32);
  first.call.destroy();
  expect(client.stats()).toMatchObject({ origins: 32, open: 31, waiting: 2 });
  waiting[0]?.call.destroy();
  expect(await waiting[1]?.outcome()).toBe('busy');
  expect(client.stats()).toMatchObject({ origins: 31, waiting: 0 });
  for (const peer of server.peers) peer.socket.destroy();
  await eventually(() => client.stats().open === 0);
  expect(client.stats().origins).toBe(0);
});

test('a call that waits for room in the process is served when others leave, even if its listing has no connection', async () => {
  await client.close();
  client = newClient({ maxConnectionsPerOrigin: 1, maxConnections: CONNECTIONS });
  const listing = new Destination(destination.origin, 'small');
  const start = (account: string, to: Destination): Exchange =>
    new Exchange(client, server.url, { destination: to, account, path: `/${account}` });
  const first = start('a', listing);
  await eventually(() => count('a') === 1);
  const waiting = start('a', listing);
  for (let i = 0; i < 23; i++) start('a', new Destination(destination.origin, `own${i}`));
  for (let i = 0; i < 8; i++) start(`b${i}`, new Destination(destination.origin, `other${i}`));
  await eventually(() => arrived.length === 32);
  first.call.destroy();
  expect(client.stats()).toMatchObject({ open: 31, waiting: 1 });
  // All connections of the process go at once.
  for (const peer of server.peers) peer.socket.destroy();
  await eventually(() => arrived.length === 33);
  server.peers.at(-1)?.send(OK);
  expect(await waiting.outcome()).toBe(200);
});
