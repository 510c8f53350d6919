import { expect, it } from 'vitest';
import { firstReference, keptOf, leftOf, sharesOf } from '../../web/src/console/shared/refunds/shares.ts';

const CALL = { amount: 0.01, fee: 0.000507 };

it('a refund is shared as the gateway shares it: the fee in proportion over all refunds, and the rest from earnings', () => {
  expect(sharesOf(CALL, 0.01, 1)).toEqual({ fee: 0.000507, provider: 0.009493, uncovered: 0 });
  expect(sharesOf(CALL, 0.003, 1)).toEqual({ fee: 0.000152, provider: 0.002848, uncovered: 0 });
  // 0.000507 is all that comes back in the end.
  expect(sharesOf({ ...CALL, refunded: 0.003 }, 0.007, 1)).toEqual({ fee: 0.000355, provider: 0.006645, uncovered: 0 });
});

it('the platform pays what the earnings do not cover, and never more than the provider had to pay', () => {
  expect(sharesOf(CALL, 0.01, 0.009).uncovered).toBe(0.000493);
  expect(sharesOf(CALL, 0.01, 0).uncovered).toBe(0.009493);
  expect(sharesOf(CALL, 0.01, -5).uncovered).toBe(0.009493);
  expect(sharesOf(CALL, 0.01, null).uncovered).toBe(0);
});

it('the rest that can be refunded is exact, and the next refund of the same call has another reference', () => {
  expect([leftOf({ amount: 0.3 }), leftOf({ amount: 0.3, refunded: 0.1 })]).toEqual([0.3, 0.2]);
  expect(firstReference({ usage_id: 'u' })).toBe('call u');
  const refund = { amount: 0.1, reason: 'x', reference: 'y', by: 'provider', created_at: '2026-11-26' } as const;
  expect(firstReference({ usage_id: 'u', refunds: [refund] })).toBe('call u no. 2');
});

it('what the platform and the provider still have of a call adds up to what the buyer still pays', () => {
  const call = { amount: 0.002, fee: 0.0002 };
  expect(keptOf(call)).toEqual({ fee: 0.0002, earned: 0.0018 });
  expect(keptOf({ ...call, refunded: 0.002 })).toEqual({ fee: 0, earned: 0 });
  expect(keptOf({ ...call, refunded: 0.0005 })).toEqual({ fee: 0.00015, earned: 0.00135 });
});
