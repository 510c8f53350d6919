import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { AddressBook } from '../../src/upstream/address-book.ts';
import { AddressPolicy } from '../../src/upstream/address-policy.ts';
import { NameLookup } from '../../src/upstream/name-lookup.ts';
import { until } from '../support/wait.ts';
import { type NameRecord, type Nameserver, nameserver } from './nameserver.ts';

let folder: string;
let server: Nameserver;

beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'tollgate-names-'));
});
afterEach(async () => {
  rmSync(folder, { recursive: true });
  await server.close();
});

type System = {
  readonly hosts?: string;
  readonly resolvConf?: string;
  readonly maxLookupMs?: number;
  /** Nameservers to ask before the one that has the records. */
  readonly before?: readonly string[];
};

async function newLookup(records: Record<string, NameRecord>, system: System = {}) {
  const { hosts, resolvConf, maxLookupMs, before = [] } = system;
  server = await nameserver(records);
  const hostsFile = path.join(folder, 'hosts');
  const resolvFile = path.join(folder, 'resolv.conf');
  if (hosts !== undefined) writeFileSync(hostsFile, hosts);
  if (resolvConf !== undefined) writeFileSync(resolvFile, resolvConf);
  const limit = maxLookupMs === undefined ? {} : { maxLookupMs };
  return new NameLookup({ hostsFile, resolvConf: resolvFile, servers: [...before, server.address], ...limit }).lookup;
}

test('a look-up that times out sets no timer with a negative delay', async () => {
  const lookup = await newLookup({ 'silent.example': { silent: 'always' } }, { maxLookupMs: 100 });
  const timers = vi.spyOn(globalThis, 'setTimeout');
  // The event loop is blocked until the time is up.
  setTimeout(() => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100), 50);
  try {
    await expect(lookup('silent.example')).rejects.toMatchObject({ code: 'ETIMEOUT' });
    expect(timers.mock.calls.filter(([, ms]) => Number(ms) < 0)).toEqual([]);
  } finally {
    timers.mockRestore();
  }
});

test('names that are not answered delay no other name, and fail when they time out', async () => {
  const silent = Array.from({ length: 32 }, (_, i) => `silent${i}.example`);
  const records = Object.fromEntries(silent.map((name) => [name, { silent: 'always' } as const]));
  const lookup = await newLookup({ ...records, 'healthy.example': { ipv4: ['1.1.1.1'] } }, { maxLookupMs: 1_500 });
  let hanging = silent.length;
  const failures = silent.map((name) => lookup(name).finally(() => hanging--));
  const results = Promise.allSettled(failures);
  expect(await lookup('healthy.example')).toEqual([{ address: '1.1.1.1', family: 4 }]);
  expect(hanging).toBe(silent.length);
  for (const failure of await results) {
    expect(failure).toMatchObject({ status: 'rejected', reason: { code: 'ETIMEOUT' } });
  }
});

test('a name has the addresses of both families, IPv4 first', async () => {
  const lookup = await newLookup({ 'both.example': { ipv4: ['1.1.1.1', '1.0.0.1'], ipv6: ['2606:4700:0:0:0:0:0:1'] } });
  expect(await lookup('both.example')).toEqual([
    { address: '1.1.1.1', family: 4 },
    { address: '1.0.0.1', family: 4 },
    { address: '2606:4700::1', family: 6 },
  ]);
});

test('the addresses of one family are enough when the other is not answered', async () => {
  const lookup = await newLookup({ 'half.example': { ipv4: ['1.1.1.1'], silent: 'ipv6' } }, { maxLookupMs: 300 });
  expect(await lookup('half.example')).toEqual([{ address: '1.1.1.1', family: 4 }]);
});

test('an alias that leads to no address fails', async () => {
  const lookup = await newLookup({ 'alias.example': { alias: 'gone.example' } });
  await expect(lookup('alias.example')).rejects.toMatchObject({ code: 'ENODATA' });
  const book = new AddressBook(new AddressPolicy([]), lookup);
  expect(await book.resolve('alias.example')).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
});

test('the hosts file takes precedence, and is read again when it has changed', async () => {
  const hosts =
    '127.0.0.1 localhost\n# 1.2.3.4 comment\n203.0.114.7\tNeighbour other # why\n2606::1 neighbour\nnonsense x\n';
  const lookup = await newLookup({ neighbour: { ipv4: ['1.1.1.1'] }, later: { ipv4: ['1.1.1.1'] } }, { hosts });
  expect(await lookup('neighbour')).toEqual([
    { address: '203.0.114.7', family: 4 },
    { address: '2606::1', family: 6 },
  ]);
  expect(await lookup('other')).toEqual([{ address: '203.0.114.7', family: 4 }]);
  expect(server.asked).toEqual([]);
  expect(await lookup('later')).toEqual([{ address: '1.1.1.1', family: 4 }]);
  writeFileSync(path.join(folder, 'hosts'), '203.0.114.8 later\n');
  expect(await lookup('later')).toEqual([{ address: '203.0.114.8', family: 4 }]);
});

test('the short name of a container is found within the search domains', async () => {
  const resolvConf = 'search ignored.example\nsearch apps.svc.cluster.local svc.cluster.local. .\noptions ndots:5\n';
  const lookup = await newLookup(
    {
      redis: { ipv4: ['10.0.0.2'] },
      'api.apps.svc.cluster.local': { ipv4: ['10.0.0.3'] },
      'api.other.svc.cluster.local': { ipv4: ['10.0.0.4'] },
    },
    { resolvConf },
  );
  expect(await lookup('redis')).toEqual([{ address: '10.0.0.2', family: 4 }]);
  expect(await lookup('api')).toEqual([{ address: '10.0.0.3', family: 4 }]);
  expect(await lookup('api.other')).toEqual([{ address: '10.0.0.4', family: 4 }]);
  await expect(lookup('nobody')).rejects.toMatchObject({ code: 'ENOTFOUND' });
});

test('addresses with a zone in the hosts file are skipped', async () => {
  const hosts = '127.0.0.1 localhost neighbour\nfe80::1%lo0 localhost neighbour zoned\n';
  const lookup = await newLookup({ zoned: { ipv4: ['1.1.1.1'] } }, { hosts });
  const book = new AddressBook(new AddressPolicy(['127.0.0.0/8']), lookup);
  for (const name of ['localhost', 'neighbour']) {
    expect(await book.resolve(name)).toEqual({ ok: true, addresses: [{ address: '127.0.0.1', family: 4 }] });
  }
  expect(await lookup('zoned')).toEqual([{ address: '1.1.1.1', family: 4 }]);
});

/** The names that were asked for, in order; each counts once for both families. */
const askedFor = (): string[] => [...new Set(server.asked)];

test.each([
  ['a short name', 'api', '', ['api.apps.internal', 'api.internal', 'api']],
  ['a name with a dot', 'api.example', '', ['api.example', 'api.example.apps.internal', 'api.example.internal']],
  ['fewer dots than ndots', 'a.b', 'options ndots:2', ['a.b.apps.internal', 'a.b.internal', 'a.b']],
  ['as many dots as ndots', 'a.b.c', 'options ndots:2', ['a.b.c', 'a.b.c.apps.internal', 'a.b.c.internal']],
  ['the last ndots', 'a.b', 'options ndots:5 rotate\noptions ndots:x edns0 ndots:1', ['a.b']],
  ['ndots is 0', 'api', 'options ndots:0', ['api']],
  ['a dot at the end', 'api.', 'options ndots:5', ['api']],
])('candidates in search domains, %s: %s', async (_, name, options, order) => {
  const lookup = await newLookup({}, { resolvConf: `search apps.internal internal\n${options}\n` });
  await expect(lookup(name)).rejects.toMatchObject({ code: 'ENOTFOUND' });
  expect(askedFor().slice(0, order.length)).toEqual(order);
  expect(askedFor()).toHaveLength(name.endsWith('.') ? 1 : 3);
});

test('after a name is found within a search domain, no further candidates are queried', async () => {
  const lookup = await newLookup(
    { 'api.internal': { ipv4: ['10.0.0.3'] }, api: { ipv4: ['1.1.1.1'] } },
    { resolvConf: 'search internal\n' },
  );
  expect(await lookup('api')).toEqual([{ address: '10.0.0.3', family: 4 }]);
  expect(askedFor()).toEqual(['api.internal']);
});

test.each([
  ['a nameserver that fails', 'ESERVFAIL', { fails: 'always' }],
  ['silence', 'ETIMEOUT', { silent: 'always' }],
  ['no IPv4 and a failure for IPv6', 'ESERVFAIL', { fails: 'ipv6' }],
] as const)('%s says nothing about the name, so the search domains are not queried', async (_, code, record) => {
  const wildcard = { ipv4: ['10.0.0.9'] };
  const lookup = await newLookup(
    { 'api.example': record, 'short.a.internal': record, '*.example.internal': wildcard, '*.internal': wildcard },
    { resolvConf: 'search a.internal internal\n', maxLookupMs: 300 },
  );
  await expect(lookup('api.example')).rejects.toMatchObject({ code });
  expect(askedFor()).toEqual(['api.example']);
  await expect(lookup('short')).rejects.toMatchObject({ code });
  expect(askedFor()).toEqual(['api.example', 'short.a.internal']);
});

test('a service keeps its address while its nameserver fails, even if a search domain has the name', async () => {
  const records: Record<string, NameRecord> = {
    'api.example': { ipv4: ['1.1.1.1'] },
    '*.example.internal': { ipv4: ['10.0.0.9'] },
  };
  const lookup = await newLookup(records, { resolvConf: 'search internal\n' });
  const book = new AddressBook(new AddressPolicy([]), lookup);
  const good = { ok: true, addresses: [{ address: '1.1.1.1', family: 4 }] };
  expect(await book.resolve('api.example')).toEqual(good);
  records['api.example'] = { fails: 'always' };
  const now = vi.spyOn(performance, 'now');
  const later = performance.now() + 10_000;
  try {
    now.mockImplementation(() => later);
    const asked = server.asked.length;
    expect(await book.resolve('api.example')).toEqual(good);
    await until(() => server.asked.length > asked);
    await expect(lookup('api.example')).rejects.toMatchObject({ code: 'ESERVFAIL' });
    expect(await book.resolve('api.example')).toEqual(good);
  } finally {
    now.mockRestore();
  }
});

test('a name that does not exist for IPv4 does not exist, even if the IPv6 query is not answered', async () => {
  const lookup = await newLookup(
    { 'api.example.internal': { ipv4: ['10.0.0.3'] }, 'api.example': { missing: 'ipv4', silent: 'ipv6' } },
    { resolvConf: 'search internal\n', maxLookupMs: 600 },
  );
  expect(await lookup('api.example')).toEqual([{ address: '10.0.0.3', family: 4 }]);
});

test('a name that would be too long within a search domain is still queried unchanged', async () => {
  const name = Array(4).fill('a'.repeat(60)).join('.');
  const lookup = await newLookup(
    { [name]: { ipv4: ['1.1.1.1'] } },
    { resolvConf: 'search somewhere.within.internal\noptions ndots:5\n' },
  );
  expect(await lookup(name)).toEqual([{ address: '1.1.1.1', family: 4 }]);
});

test('the last nameserver has time to answer when all others are gone', async () => {
  const domains = ['a.internal', 'b.internal', 'c.internal'];
  const candidates = ['api.example', ...domains.map((domain) => `api.example.${domain}`)];
  const silent = Object.fromEntries(candidates.map((name) => [name, { silent: 'always' } as const]));
  const gone = [await nameserver(silent), await nameserver(silent)];
  try {
    const lookup = await newLookup(
      { 'api.example': { ipv4: ['1.1.1.1'] } },
      {
        resolvConf: `search ${domains.join(' ')}\noptions ndots:5\n`,
        before: gone.map(({ address }) => address),
      },
    );
    expect(await lookup('api.example')).toEqual([{ address: '1.1.1.1', family: 4 }]);
  } finally {
    for (const each of gone) await each.close();
  }
});

test('localhost is the loopback address, whatever the nameserver says', async () => {
  const lookup = await newLookup({ 'a.localhost': { ipv4: ['1.1.1.1'] } });
  for (const name of ['localhost', 'a.localhost', 'localhost.']) {
    expect(await lookup(name)).toEqual([
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
  }
});
