import { expect, it } from 'vitest';
import type { Terms } from '../../../src/catalog/listing.ts';
import { nextPrice, nextPriceWithOperations } from '../../../src/catalog/notice/next-price.ts';

const FROM_MS = Date.parse('2026-01-31T12:00:00Z');
const terms = (operations: unknown[][] | null, more: Partial<Terms> = {}): Terms => ({
  priceMicros: 2_000,
  maxPriceMicros: null,
  freeCalls: 0,
  onlyOperations: false,
  operationTerms: operations && JSON.stringify(operations),
  ...more,
});
const announced = (now: Terms, next: Terms) => nextPriceWithOperations(now, { ...next, fromMs: FROM_MS });
const ALWAYS = { price: 0.002, from: '2026-01-31T12:00:00.000Z' };

it('an announcement names only what changes, with old and new values', () => {
  const now = terms([
    ['GET', '/a', 1_000, null],
    ['GET', '/b', 1_000, null],
    ['GET', '/c/{id}', null, null],
    ['GET', '/d', 500, null],
  ]);
  const next = terms([
    ['GET', '/b', 1_500, null],
    ['GET', '/a', 1_000, null],
    ['GET', '/c/{name}', null, null],
    ['PUT', '/e', 2_000, null],
  ]);
  expect(announced(now, next)).toEqual({
    ...ALWAYS,
    operations: [
      { method: 'GET', path: '/b', price: 0.0015, old_price: 0.001 },
      { method: 'GET', path: '/d', old_price: 0.0005 },
      { method: 'PUT', path: '/e', price: 0.002 },
    ],
  });
  const fewer = terms(null, { freeCalls: 3, onlyOperations: true });
  expect(announced(fewer, terms(null, { freeCalls: 0 }))).toEqual({
    ...ALWAYS,
    free_calls: 0,
    old_free_calls: 3,
    only_operations: false,
  });
});

it('an operation without its own price follows the listing, whose price is announced once', () => {
  const now = terms([
    ['GET', '/a', null, null],
    ['GET', '/b', null, null],
    ['GET', '/c', 2_000, null],
  ]);
  const next = terms(
    [
      ['GET', '/a', null, null],
      ['GET', '/b', 2_500, null],
      ['GET', '/c', null, null],
    ],
    { priceMicros: 3_000 },
  );
  expect(announced(now, next)).toEqual({
    ...ALWAYS,
    price: 0.003,
    old_price: 0.002,
    operations: [
      { method: 'GET', path: '/b', price: 0.0025, old_price: 0.002 },
      { method: 'GET', path: '/c', price: 0.003, old_price: 0.002 },
    ],
  });
});

it('a list names no operations, and tools are announced by name', () => {
  const [now, next] = [terms([['search', 1_000, null]]), terms([['search', 2_000, null]])];
  expect(nextPrice(now, { ...next, fromMs: FROM_MS })).toEqual(ALWAYS);
  expect(announced(now, next).operations).toEqual([{ tool: 'search', price: 0.002, old_price: 0.001 }]);
});

it('a maximum price is announced where it changes, and where only the old maximum ends', () => {
  const now = terms([['GET', '/a', 1_000, 3_000]], { maxPriceMicros: 50_000 });
  const risen = terms([['GET', '/a', 1_000, 4_000]], { maxPriceMicros: 60_000 });
  expect(announced(now, risen)).toEqual({
    ...ALWAYS,
    max_price: 0.06,
    old_max_price: 0.05,
    operations: [{ method: 'GET', path: '/a', price: 0.001, max_price: 0.004, old_price: 0.001, old_max_price: 0.003 }],
  });
  expect(announced(now, terms([['GET', '/a', 1_000, 3_000]], { priceMicros: 3_000 }))).toEqual({
    ...ALWAYS,
    price: 0.003,
    old_price: 0.002,
    old_max_price: 0.05,
  });
});
