import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { evenTags, SLOTS, slotOf } from '../../../src/platform/cluster/hash-tags.ts';

describe('the slot of a key', () => {
  it('follows the specification', () => {
    // From the Redis Cluster Specification: CRC16 of '123456789' is 0x31C3. The others are CLUSTER KEYSLOT's of Redis 7.0.
    expect(slotOf('123456789')).toBe(0x31c3);
    expect(slotOf('foo')).toBe(12_182);
    expect(slotOf('{user1000}.following')).toBe(slotOf('user1000'));
    expect(slotOf('foo{}{bar}')).toBe(8_363);
    expect(slotOf('foo{{bar}}zap')).toBe(slotOf('{bar'));
    expect(slotOf('foo{bar}{zap}')).toBe(slotOf('bar'));
  });
});

describe('the tags of shards', () => {
  it('never change', () => {
    expect(evenTags(4)).toEqual(['0.1', '1.11', '2.1', '3.11']);
    expect(evenTags(16)[15]).toBe('15.20');
  });

  it('spread the shards evenly over any number of nodes with equal ranges of slots', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1, max: 300 }), (shards, nodes) => {
        fc.pre(nodes <= shards);
        const counts = new Array<number>(nodes).fill(0);
        for (const tag of evenTags(shards)) {
          const node = Math.floor((slotOf(`{${tag}}`) * nodes) / SLOTS);
          counts[node] = (counts[node] ?? 0) + 1;
        }
        for (const count of counts) expect(Math.abs(count - shards / nodes)).toBeLessThan(4 / 3);
      }),
      { numRuns: 25 },
    );
  });

  it('are different from each other', () => {
    expect(new Set(evenTags(1_024).map((tag) => slotOf(tag))).size).toBe(1_024);
  });
});
