import { describe, expect, test } from 'vitest';
import { AddressPolicy } from '../../src/upstream/address-policy.ts';
import { maySendSecrets } from '../../src/upstream/listed-address.ts';

const FORBIDDEN: [address: string, why: string][] = [
  ['0.0.0.0', 'unspecified'],
  ['0.1.2.3', 'this network'],
  ['10.0.0.1', 'private'],
  ['10.255.255.255', 'private'],
  ['100.64.0.0', 'carrier-grade NAT'],
  ['100.100.100.200', 'metadata (Alibaba)'],
  ['100.127.255.255', 'carrier-grade NAT'],
  ['127.0.0.1', 'loopback'],
  ['127.255.255.254', 'loopback'],
  ['169.254.0.1', 'link-local'],
  ['169.254.169.254', 'metadata'],
  ['172.16.0.1', 'private'],
  ['172.31.255.255', 'private'],
  ['192.0.0.192', 'metadata (Oracle)'],
  ['192.0.2.1', 'documentation'],
  ['192.88.99.1', '6to4 relay'],
  ['192.168.0.1', 'private'],
  ['198.18.0.1', 'benchmarking'],
  ['198.19.255.255', 'benchmarking'],
  ['198.51.100.1', 'documentation'],
  ['203.0.113.1', 'documentation'],
  ['224.0.0.1', 'multicast'],
  ['239.255.255.255', 'multicast'],
  ['240.0.0.1', 'reserved'],
  ['255.255.255.255', 'broadcast'],
  ['::', 'unspecified'],
  ['::1', 'loopback'],
  ['::8.8.8.8', 'IPv4-compatible'],
  ['::7f00:1', 'IPv4-compatible loopback'],
  ['::ffff:127.0.0.1', 'IPv4-mapped'],
  ['::ffff:8.8.8.8', 'IPv4-mapped, even of a public address'],
  ['::ffff:0:127.0.0.1', 'IPv4-translated'],
  ['64:ff9b::7f00:1', 'NAT64'],
  ['64:ff9b::808:808', 'NAT64, even of a public address'],
  ['64:ff9b:1::1', 'local NAT64'],
  ['100::1', 'discard'],
  ['1fff::1', 'unallocated'],
  ['2001::1', 'Teredo'],
  ['2001:0:4136:e378:8000:63bf:3fff:fdd2', 'Teredo'],
  ['2001:2::1', 'benchmarking'],
  ['2001:10::1', 'ORCHID'],
  ['2001:20::1', 'ORCHIDv2'],
  ['2001:1ff::1', 'protocol assignments'],
  ['2001:db8::1', 'documentation'],
  ['2002:7f00:1::', '6to4 of loopback'],
  ['2002:808:808::1', '6to4'],
  ['3fff:1::1', 'documentation'],
  ['4000::1', 'unallocated'],
  ['5f00::1', 'segment routing'],
  ['fc00::1', 'unique-local'],
  ['fd00:ec2::254', 'metadata (AWS)'],
  ['fe80::1', 'link-local'],
  ['fe80::1%eth0', 'link-local with a zone'],
  ['fec0::1', 'site-local'],
  ['ff02::1', 'multicast'],
  ['not an address', 'not an address'],
  ['', 'nothing'],
  ['127.1', 'a spelling that getaddrinfo does not return'],
];

const PUBLIC = [
  '1.1.1.1',
  '8.8.8.8',
  '9.255.255.255',
  '11.0.0.0',
  '100.63.255.255',
  '100.128.0.0',
  '126.255.255.255',
  '128.0.0.0',
  '169.253.255.255',
  '169.255.0.0',
  '172.15.255.255',
  '172.32.0.0',
  '192.0.1.0',
  '192.167.255.255',
  '192.169.0.0',
  '198.17.255.255',
  '198.20.0.0',
  '223.255.255.255',
  '2001:200::1',
  '2001:4860:4860::8888',
  '2003::1',
  '2606:4700:4700::1111',
  '2a00:1450:4001:81b::200e',
  '3ffe::1',
];

const strict = new AddressPolicy([]);

describe('without allowed ranges', () => {
  test.each(FORBIDDEN)('%s is refused: %s', (address) => {
    expect(strict.permits(address)).toBe(false);
  });
  test.each(PUBLIC)('%s is public', (address) => {
    expect(strict.permits(address)).toBe(true);
  });
});

describe('allowed ranges', () => {
  test('permit the addresses in them, and no others', () => {
    const policy = new AddressPolicy(['10.1.0.0/16', 'fd00:1::/32', '192.168.7.7/32']);
    expect(policy.permits('10.1.255.255')).toBe(true);
    expect(policy.permits('10.2.0.0')).toBe(false);
    expect(policy.permits('fd00:1:2::3')).toBe(true);
    expect(policy.permits('fd00:2::1')).toBe(false);
    expect(policy.permits('192.168.7.7')).toBe(true);
    expect(policy.permits('192.168.7.8')).toBe(false);
    expect(policy.permits('8.8.8.8')).toBe(true);
  });

  test.each([
    '10.0.0.0',
    '10.0.0.0/33',
    '::/129',
    '10.0/8',
    'localhost/8',
    '10.0.0.0/8 ',
    '10.0.0.0/',
    '',
    '1.2.3.4/-1',
  ])('%j is refused as a range', (cidr) => {
    expect(() => new AddressPolicy([cidr])).toThrow(RangeError);
  });
});

describe('a name with several addresses', () => {
  const named = (...addresses: string[]) =>
    addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
  const select = (policy: AddressPolicy, ...addresses: string[]) =>
    policy.select(named(...addresses)).map(({ address }) => address);

  test('keeps their order when all are permitted', () => {
    expect(select(strict, '2606:4700::1', '1.1.1.1')).toEqual(['2606:4700::1', '1.1.1.1']);
  });

  test('is refused entirely when one of them is forbidden', () => {
    expect(select(strict, '1.1.1.1', '127.0.0.1')).toEqual([]);
    expect(select(strict, '10.0.0.1', '1.1.1.1')).toEqual([]);
    const policy = new AddressPolicy(['10.0.0.0/8']);
    expect(select(policy, '10.0.0.1', '1.1.1.1')).toEqual(['10.0.0.1', '1.1.1.1']);
    expect(select(policy, '10.0.0.1', '192.168.0.1')).toEqual([]);
  });

  test('localhost works when either loopback is allowed', () => {
    expect(select(new AddressPolicy(['127.0.0.0/8']), '::1', '127.0.0.1')).toEqual(['127.0.0.1']);
    expect(select(new AddressPolicy(['::1/128']), '::1', '127.0.0.1')).toEqual(['::1']);
    expect(select(new AddressPolicy(['127.0.0.0/8', '::1/128']), '::1', '127.0.0.1')).toEqual(['::1', '127.0.0.1']);
    expect(select(new AddressPolicy(['10.0.0.0/8']), '::1', '127.0.0.1')).toEqual([]);
    expect(select(new AddressPolicy(['127.0.0.0/8']), '::1', '127.0.0.1', '10.0.0.1')).toEqual([]);
    expect(select(new AddressPolicy(['127.0.0.0/8']), '::1')).toEqual([]);
  });
});

describe('secrets', () => {
  const policy = new AddressPolicy(['10.0.0.0/8', '203.0.113.0/24', '127.0.0.0/8']);
  const none = new AddressPolicy([]);

  test('may be sent over TLS, or unencrypted to an address that the operator allows', () => {
    for (const endpoint of ['https://a.example', 'https://8.8.8.8', 'https://10.1.1.1']) {
      expect([endpoint, maySendSecrets(endpoint, policy), maySendSecrets(endpoint, none)]).toEqual([
        endpoint,
        true,
        true,
      ]);
    }
    for (const endpoint of ['http://10.1.1.1:8080/a', 'http://0xa.1', 'http://203.0.113.5', 'http://LOCALHOST:1']) {
      expect([endpoint, maySendSecrets(endpoint, policy), maySendSecrets(endpoint, none)]).toEqual([
        endpoint,
        true,
        false,
      ]);
    }
  });

  test('may not be sent unencrypted to a public address, or to a name that may lead to a public address later', () => {
    for (const endpoint of ['http://8.8.8.8', 'http://a.example', 'http://service.internal', 'http://a.localhost']) {
      expect([endpoint, maySendSecrets(endpoint, policy)]).toEqual([endpoint, false]);
    }
    expect(maySendSecrets('http://localhost', new AddressPolicy(['10.0.0.0/8']))).toBe(false);
  });
});
