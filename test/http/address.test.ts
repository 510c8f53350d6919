import { describe, expect, it } from 'vitest';
import { networkOf } from '../../src/http/address.ts';

describe('what counts as one caller', () => {
  it.each([
    ['192.0.2.7', '192.0.2.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:ffff:0000:0000:0001', '2001:db8:1:2::/64'],
    ['2001:db8::1', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['fe80::', 'fe80:0:0:0::/64'],
    ['::ffff:192.0.2.7', '192.0.2.7'],
    ['0000:0000:0000:0000:0000:ffff:c000:0207', '192.0.2.7'],
    ['unknown', null],
    ['', null],
    ['1:2', null],
    ['2001:db8::1%eth0', null],
  ])('%j is %j', (address, network) => {
    expect(networkOf(address)).toBe(network);
  });
});
