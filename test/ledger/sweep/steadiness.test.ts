import { expect, it } from 'vitest';
import { LEASE_RENEW_MS } from '../../../src/admission/trips.ts';
import { SETTINGS } from '../../../src/config/settings.ts';
import { LONGEST_GAP, Steadiness } from '../../../src/ledger/sweep/steadiness.ts';

it.each([SETTINGS.INSTANCE_LEASE_SECONDS.minimum, SETTINGS.INSTANCE_LEASE_SECONDS.default])(
  "with a lease of %i s, the longest silence of Redis that the sweep ignores is too short to end a living gateway's lease",
  (leaseSeconds) => {
    const leaseMs = leaseSeconds * 1000;
    // The silence begins just before a renewal was due.
    expect(LEASE_RENEW_MS + leaseMs * LONGEST_GAP).toBeLessThan(leaseMs);
  },
);

it('expired leases count after Redis has answered for a whole lease, and after a silence that time starts again', () => {
  const steadiness = new Steadiness(15);
  let nowMs = 0;
  const answer = (afterMs: number): boolean => {
    nowMs += afterMs;
    steadiness.reported({ dataId: 'run', nowMs });
    return steadiness.lasting;
  };
  expect([answer(0), answer(5_000), answer(5_000), answer(5_000)]).toEqual([false, false, false, true]);
  expect(answer(10_000)).toBe(true);
  expect([answer(10_001), answer(10_000), answer(5_000)]).toEqual([false, false, true]);
});

it('another Redis process does not prove that a gateway is dead', () => {
  const steadiness = new Steadiness(15);
  for (const nowMs of [0, 5_000, 10_000, 15_000]) steadiness.reported({ dataId: 'a', nowMs });
  expect(steadiness.lasting).toBe(true);
  steadiness.reported({ dataId: 'b', nowMs: 16_000 });
  expect(steadiness.lasting).toBe(false);
  for (const nowMs of [20_000, 25_000, 30_999]) steadiness.reported({ dataId: 'b', nowMs });
  expect(steadiness.lasting).toBe(false);
});
