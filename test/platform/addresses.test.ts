import { isIP } from 'node:net';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { isCidr, networkOf } from '../../src/platform/addresses.ts';

describe('the network that counts as one caller', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff:0000:0000:0001', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['0000:0000:0000:0000:0000:ffff:c000:0207', '192.0.2.7'],
    ['999.999.999.999', null],
    ['192.0.2', null],
    ['unknown', null],
    ['', null],
    ['1:2', null],
    ['2001:db8::1%eth0', null],
  ])('for %j is %j', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});

it.each(['0.0.0.0/0', '10.0.0.0/8', '127.0.0.1/32', '::/0', '::1/128', 'fd00::/8', '::ffff:10.0.0.0/104', '1::/16'])(
  '%j is an address range',
  (text) => expect(isCidr(text)).toBe(true),
);

it.each([
  '',
  '/',
  '10.0.0.0',
  '10.0.0.0/',
  '10.0.0.0/33',
  '10.0.0.0/-1',
  '10.0.0.0/8/8',
  '10.0.0.0/ 8',
  '10.0.0.0/0x8',
  '10.0.0/8',
  '10.0.0.256/8',
  'fd00::/129',
  'fe80::1%eth0/64',
  '1::2::3/64',
  'localhost/8',
])('%j is not an address range', (text) => expect(isCidr(text)).toBe(false));

it('an address is valid exactly if the network stack accepts it', () => {
  const part = fc.constantFrom(
    '::',
    ':',
    '.',
    '0',
    '1',
    '10',
    '255',
    '256',
    '01',
    'f',
    'ffff',
    '00000',
    'g',
    '1.2.3.4',
  );
  const groups = fc.array(fc.constantFrom('', '0', 'ff', 'FFFF', '1.2.3.4'), { minLength: 1, maxLength: 9 });
  const address = fc.oneof(
    fc.array(part, { maxLength: 16 }).map((parts) => parts.join('')),
    groups.map((parts) => parts.join(':')),
    fc.ipV4(),
    fc.ipV6(),
  );
  fc.assert(
    fc.property(address, (text) => {
      expect([text, isCidr(`${text}/16`)]).toEqual([text, isIP(text) !== 0]);
    }),
    { numRuns: 5000 },
  );
});
