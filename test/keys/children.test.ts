import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { BUDGET_PERIODS } from '../../src/keys/budget-period.ts';
import { type Limits, limitsFault, servicesInAll } from '../../src/keys/children/limits.ts';

const NOW = new Date('2026-11-23T12:00:00Z');
const SERVICES = ['a', 'b', 'c'];

const limits = fc.record<Limits>({
  budget: fc.option(fc.record({ amountMicros: fc.nat(4), period: fc.constantFrom(...BUDGET_PERIODS) })),
  rateLimit: fc.integer({ min: 1, max: 4 }),
  maxPriceMicros: fc.option(fc.nat(4)),
  services: fc.option(fc.subarray(SERVICES)),
  expiresAt: fc.option(fc.integer({ min: 1, max: 4 }).map((hours) => new Date(NOW.getTime() + hours * 3_600_000))),
});

describe('limits of child keys', () => {
  it('are accepted only if they stay within the limits of the keys above', () => {
    fc.assert(
      fc.property(fc.array(limits, { minLength: 1, maxLength: 3 }), limits, (above, own) => {
        if (limitsFault(own, above, NOW) !== null) return;
        for (const service of own.services ?? [])
          expect(above.every((key) => key.services?.includes(service) ?? true)).toBe(true);
        expect(own.rateLimit).toBeLessThanOrEqual(Math.min(...above.map(({ rateLimit }) => rateLimit)));
        const { maxPriceMicros: price, expiresAt } = own;
        const prices = above.flatMap((key) => key.maxPriceMicros ?? []);
        if (price !== null) expect(price).toBeLessThanOrEqual(Math.min(Number.POSITIVE_INFINITY, ...prices));
        const ends = above.flatMap((key) => key.expiresAt?.getTime() ?? []);
        if (expiresAt !== null)
          expect(expiresAt.getTime()).toBeLessThanOrEqual(Math.min(Number.POSITIVE_INFINITY, ...ends));
      }),
    );
  });

  it.each([
    ['day', 3, 'month', 2, true],
    ['month', 3, 'day', 2, false],
    ['week', 3, 'week', 2, true],
    ['total', 3, 'total', 3, false],
    ['total', 3, 'month', 2, false],
  ] as const)('%s %i below %s %i: refused %s', (period, amount, above, most, isRefused) => {
    const none = { budget: null, rateLimit: 1, maxPriceMicros: null, services: null, expiresAt: null };
    const budget = { amountMicros: amount, period };
    const fault = limitsFault({ budget }, [{ ...none, budget: { amountMicros: most, period: above } }], NOW);
    expect(fault?.startsWith('budget:') ?? false).toBe(isRefused);
  });
});

it('the allowed services are those that are in all lists', () => {
  expect(servicesInAll(null)).toBeNull();
  expect(servicesInAll([['a', 'b']])).toEqual(new Set(['a', 'b']));
  expect(servicesInAll([['a', 'b'], ['b', 'c'], ['b']])).toEqual(new Set(['b']));
  expect(servicesInAll([['a'], ['b']])).toEqual(new Set());
});
