import { describe, expect, it } from 'vitest';
import { isClusterUrl, parseClusterUrl } from '../../../src/platform/cluster/cluster-url.ts';
import { readRefusal, readSlotOwners } from '../../../src/platform/cluster/slots.ts';

describe('the URL of a cluster', () => {
  it('names nodes that share its credentials and TLS', () => {
    const { seeds, urlOf } = parseClusterUrl('rediss+cluster://user:p%40ss@a.example:7000,[::1]:7001');
    expect(seeds).toEqual(['a.example:7000', '[::1]:7001']);
    expect(urlOf('b:1')).toBe('rediss://user:p%40ss@b:1');
    expect(parseClusterUrl('redis+cluster://a:1').urlOf('b:1')).toBe('redis://b:1');
  });

  it.each([
    'redis+cluster://',
    'redis+cluster://a',
    'redis+cluster://a:1,',
    'redis+cluster://a:1/0',
    'redis+cluster://a:99999',
    'redis+cluster://u:secret@a',
  ])('%s is refused, without its password', (url) => {
    expect(isClusterUrl(url)).toBe(true);
    expect(() => parseClusterUrl(url)).toThrow(/^the URL of a Redis Cluster must be/);
    expect(() => parseClusterUrl(url)).not.toThrow(/secret/);
  });
});

describe('replies of nodes about slots', () => {
  it('are read with names and addresses, and use the queried host where a name is missing', () => {
    const owners = readSlotOwners(
      [
        [0, 1, ['10.0.0.1', 7000, 'id'], ['10.0.0.2', 7000, 'id']],
        [3, 3, ['', 7001, 'id']],
        [4, 4, [null, 7002, 'id']],
        [16_383, 16_383, ['fd00::1', 7003, 'id']],
      ],
      'asked',
    );
    expect(owners.slice(0, 5)).toEqual(['10.0.0.1:7000', '10.0.0.1:7000', null, 'asked:7001', 'asked:7002']);
    expect(owners[16_383]).toBe('[fd00::1]:7003');
  });

  it('that refuse a command say where to send the command, or to wait', () => {
    expect(readRefusal('MOVED 3999 10.0.0.1:7000', 'asked')).toEqual({ address: '10.0.0.1:7000' });
    expect(readRefusal('MOVED 3999 :7000', 'asked')).toEqual({ address: 'asked:7000' });
    for (const later of [
      'ASK 3999 10.0.0.1:7000',
      'TRYAGAIN Multiple keys request during rehashing of slot',
      'CLUSTERDOWN Hash slot not served',
      "CROSSSLOT Keys in request don't hash to the same slot",
    ]) {
      expect(readRefusal(later, 'asked')).toEqual({ address: null });
    }
    expect(readRefusal('ERR value is not an integer', 'asked')).toBeNull();
    expect(readRefusal('Command timed out', 'asked')).toBeNull();
  });
});
