import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { AddressBook } from '../../src/upstream/address-book.ts';
import { AddressPolicy } from '../../src/upstream/address-policy.ts';
import { NameLookup } from '../../src/upstream/name-lookup.ts';
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

type System = { readonly hosts?: string; readonly resolvConf?: string; readonly maxLookupMs?: number };

async function newLookup(records: Record<string, NameRecord>, { hosts, resolvConf, maxLookupMs }: System = {}) {
  server = await nameserver(records);
  const hostsFile = path.join(folder, 'hosts');
  const resolvFile = path.join(folder, 'resolv.conf');
  if (hosts !== undefined) writeFileSync(hostsFile, hosts);
  if (resolvConf !== undefined) writeFileSync(resolvFile, resolvConf);
  const limit = maxLookupMs === undefined ? {} : { maxLookupMs };
  return new NameLookup({ hostsFile, resolvConf: resolvFile, servers: [server.address], ...limit }).lookup;
}

test('names that hang keep no other name waiting, and fail when their time is up', async () => {
  const silent = Array.from({ length: 32 }, (_, i) => `silent${i}.example`);
  const records = Object.fromEntries(silent.map((name) => [name, { silent: 'always' } as const]));
  const lookup = await newLookup({ ...records, 'healthy.example': { ipv4: ['1.1.1.1'] } }, { maxLookupMs: 1_500 });
  let hanging = silent.length;
  const failures = silent.map((name) => lookup(name).finally(() => hanging--));
  const settled = Promise.allSettled(failures);
  expect(await lookup('healthy.example')).toEqual([{ address: '1.1.1.1', family: 4 }]);
  expect(hanging).toBe(silent.length);
  for (const failure of await settled) {
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

test('one family is enough when the other is not answered', async () => {
  const lookup = await newLookup({ 'half.example': { ipv4: ['1.1.1.1'], silent: 'ipv6' } }, { maxLookupMs: 300 });
  expect(await lookup('half.example')).toEqual([{ address: '1.1.1.1', family: 4 }]);
});

test('an alias that leads nowhere has no address, and that is a failure', async () => {
  const lookup = await newLookup({ 'alias.example': { alias: 'gone.example' } });
  await expect(lookup('alias.example')).rejects.toMatchObject({ code: 'ENODATA' });
  const book = new AddressBook(new AddressPolicy([]), lookup);
  expect(await book.resolve('alias.example')).toMatchObject({ ok: false, failure: { code: 'dns_failed' } });
});

test('the hosts file comes first, and is read again when it has changed', async () => {
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

test("a container's short name is found within the search domains", async () => {
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

test('localhost is the loopback, whatever a nameserver says', async () => {
  const lookup = await newLookup({ 'a.localhost': { ipv4: ['1.1.1.1'] } });
  for (const name of ['localhost', 'a.localhost']) {
    expect(await lookup(name)).toEqual([
      { address: '127.0.0.1', family: 4 },
      { address: '::1', family: 6 },
    ]);
  }
});
