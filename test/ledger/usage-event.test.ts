import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { chargedMicros, decodeUsageEvent, feeMicros, type UsageEvent } from '../../src/ledger/usage-event.ts';
import { shares } from '../../src/ledger/writing/stream.ts';
import { MAX_AMOUNT_MICROS } from '../../src/platform/money.ts';
import { holdOf, newEvent, tailOf } from './support.ts';

const decode = (event: UsageEvent) => decodeUsageEvent([event.usageId, holdOf(event), tailOf(event)].join('\t'));

describe('a usage event', () => {
  it('is decoded to what was encoded', () => {
    const event = newEvent({ path: '/a?b="c"\\', outcome: 'refunded:upstream_cut', heldMicros: 0, freeTier: true });
    expect(decode(event)).toEqual(event);
  });

  it.each<[string, Partial<Record<keyof UsageEvent, unknown>>]>([
    ['an id that is no UUID', { usageId: 'x' }],
    ['an account that is no UUID', { accountId: '' }],
    ['a service that is no UUID', { serviceId: 'NULL' }],
    ['a provider that is no UUID', { providerId: "'; DROP TABLE calls; --" }],
    ['a tab in the path', { path: '/a\tb' }],
    ['a NUL in the path', { path: '/a\0b' }],
    ['a negative amount', { heldMicros: -1 }],
    ['an amount in another notation', { heldMicros: '1e+14' }],
    ['an amount beyond what numbers can say', { heldMicros: '9999999999999999' }],
    ['a status that does not fit', { status: 40_000 }],
    ['an outcome nobody knows', { outcome: 'done' }],
    ['no time', { admittedAtMs: '' }],
  ])('with %s is refused', (_, change) => {
    expect(() => decode({ ...newEvent(), ...change } as UsageEvent)).toThrow('usage event');
  });

  it('is refused if it is a tombstone', () => {
    expect(() => decodeUsageEvent(`${newEvent().usageId}\tx\t\t1\tgateway\t${tailOf(newEvent())}`)).toThrow('fields');
  });

  it.each([
    ['without a version', '', 'fields'],
    ['of a newer version', 'v2\t', 'version: v2'],
  ])('is refused if its hold is %s', (_, version, error) => {
    const event = newEvent();
    const hold = holdOf(event).replace('v1\t', version);
    expect(() => decodeUsageEvent([event.usageId, hold, tailOf(event)].join('\t'))).toThrow(error);
  });

  it('costs the buyer the held amount only when the call completed and was not free', () => {
    expect(chargedMicros(newEvent({ heldMicros: 700 }))).toBe(700);
    expect(chargedMicros(newEvent({ heldMicros: 700, outcome: 'abandoned' }))).toBe(0);
    expect(chargedMicros(newEvent({ heldMicros: 700, outcome: 'refunded:caller_gone' }))).toBe(0);
    expect(chargedMicros(newEvent({ heldMicros: 0, freeTier: true }))).toBe(0);
  });
});

it('the fee is the exact share, rounded down, for any amount', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: MAX_AMOUNT_MICROS }),
      fc.integer({ min: 0, max: 10_000 }),
      (amount, points) => {
        expect(BigInt(feeMicros(amount, points))).toBe((BigInt(amount) * BigInt(points)) / 10_000n);
      },
    ),
  );
});

describe('a batch', () => {
  const lengths = fc.array(fc.nat(5_000), { minLength: 1, maxLength: 16 });

  it('takes as many entries as there are, up to its size, and never more of a stream than it has', () => {
    fc.assert(
      fc.property(lengths, fc.nat(4_000), (streams, size) => {
        const counts = shares(streams, size);
        const total = streams.reduce((sum, n) => sum + n, 0);
        for (const [i, count] of counts.entries()) expect(count).toBeLessThanOrEqual(streams[i] as number);
        expect(counts.reduce((sum, n) => sum + n, 0)).toBe(Math.min(total, size));
      }),
    );
  });

  it('takes short streams whole beside a long one', () => {
    expect(shares([3, 100_000, 0, 40], 1_000)).toEqual([3, 957, 0, 40]);
  });
});
