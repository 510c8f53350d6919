import { describe, expect, it } from 'vitest';
import { cheapestCall } from '../../src/catalog/cheapest-call.ts';

const own = { priceMicros: 2_000, maxPriceMicros: null, freeCalls: 0, onlyOperations: true, operationTerms: null };
type Tool = readonly [tool: string, priceMicros: number | null, maxPriceMicros: number | null];
const of = (tools: readonly Tool[], terms = {}) =>
  cheapestCall({ ...own, operationTerms: JSON.stringify(tools), ...terms });

describe('the cheapest call of a listing', () => {
  it('has the price of the listing if calls without an operation are allowed, however cheap operations are', () => {
    const cheapest = of([['a', 0, null]], { onlyOperations: false });
    expect(cheapest).toEqual({ priceMicros: 2_000, maxPriceMicros: null, isLowestOfSeveral: false, canBeFree: false });
    expect(cheapestCall({ ...own, onlyOperations: false })).toEqual(cheapest);
  });

  it('has the lowest operation price if only operations can be called', () => {
    const lowest = { priceMicros: 5_000, maxPriceMicros: null, canBeFree: false };
    expect(
      of([
        ['a', 9_000, null],
        ['b', 5_000, null],
      ]),
    ).toEqual({ ...lowest, isLowestOfSeveral: true });
    expect(
      of([
        ['a', 5_000, null],
        ['b', 5_000, null],
      ]),
    ).toEqual({ ...lowest, isLowestOfSeveral: false });
    expect(
      of([
        ['a', 5_000, 9_000],
        ['b', 5_000, null],
      ]),
    ).toEqual({ ...lowest, isLowestOfSeveral: true });
    expect(
      of([
        ['a', 5_000, null],
        ['b', null, null],
      ]),
    ).toMatchObject({ priceMicros: 2_000, isLowestOfSeveral: true });
  });

  it('is priced by use if the cheapest operation is, whether the maximum comes from the operation or from the listing', () => {
    expect(of([['a', null, 9_000]])).toMatchObject({ priceMicros: 2_000, maxPriceMicros: 9_000 });
    expect(of([['a', null, null]], { maxPriceMicros: 3_000 })).toMatchObject({ maxPriceMicros: 3_000 });
  });

  it('can be free if it is not priced by use, or if free calls apply to some operation', () => {
    const isFree = (...args: Parameters<typeof of>) => of(...args).canBeFree;
    expect(
      isFree([
        ['a', 5_000, null],
        ['b', 0, null],
      ]),
    ).toBe(true);
    expect(isFree([['a', 0, 9_000]])).toBe(false);
    expect(
      isFree(
        [
          ['a', 5_000, null],
          ['b', 2_000, null],
        ],
        { freeCalls: 1 },
      ),
    ).toBe(true);
    // Free calls serve nothing that costs more than the listing, or can.
    expect(
      isFree(
        [
          ['a', 5_000, null],
          ['b', 1_000, 3_000],
        ],
        { freeCalls: 1 },
      ),
    ).toBe(false);
  });
});
