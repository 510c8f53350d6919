import fc from 'fast-check';
import { expect, it } from 'vitest';
import { exactParts } from '../../../src/ledger/rollups/exact-parts.ts';

it('the parts contain all calls in order, and no part has a sum that a number cannot represent exactly', () => {
  const amount = fc.oneof(fc.nat(1_000_000), fc.maxSafeNat());
  const call = fc.record({ heldMicros: amount, latencyUs: amount });
  const property = fc.property(fc.array(call, { maxLength: 60 }), (calls) => {
    const parts = exactParts(calls, (one) => one);
    expect(parts.flat()).toEqual(calls);
    for (const part of parts) {
      expect(part.length).toBeGreaterThan(0);
      for (const name of ['heldMicros', 'latencyUs'] as const) {
        const sum = part.reduce((total, one) => total + BigInt(one[name]), 0n);
        expect(sum <= BigInt(Number.MAX_SAFE_INTEGER)).toBe(true);
      }
    }
  });
  fc.assert(property);
});

it('usual calls form a single part', () => {
  const calls = Array.from({ length: 10_000 }, () => ({ heldMicros: 1_000_000, latencyUs: 60_000_000 }));
  expect(exactParts(calls, (one) => one)).toHaveLength(1);
});
