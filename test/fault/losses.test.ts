import { describe, expect, it } from 'vitest';
import { uuidv7 } from '../../src/platform/ids.ts';
import { AHEAD_MS } from './clocks/clocks.ts';
import { isSumOf, Losses, ON_ITS_WAY_MS, timeOf } from './losses.ts';

const KILLED_AT_MS = 1_000_000;

function killed(mayLose = true): Losses {
  const losses = new Losses(mayLose);
  const [fromMs, toMs] = [KILLED_AT_MS - ON_ITS_WAY_MS, KILLED_AT_MS + ON_ITS_WAY_MS];
  losses.add({ group: 1, shards: new Set([2, 3]), fromMs, toMs, why: 'master killed' });
  return losses;
}

describe('a failover is allowed to lose', () => {
  const underWay = { shard: 2, fromMs: KILLED_AT_MS - 500, toMs: KILLED_AT_MS + 100 };

  it('calls of its shards that were under way at that time', () => {
    const losses = killed();
    losses.replaced(1);
    expect([losses.allow(underWay), losses.mayHaveLost(2)]).toEqual([true, true]);
    expect([losses.allow({ ...underWay, shard: 1 }), losses.mayHaveLost(1)]).toEqual([false, false]);
    expect(losses.allow({ ...underWay, toMs: KILLED_AT_MS - 500 })).toBe(false);
    expect(losses.allow({ ...underWay, fromMs: KILLED_AT_MS + 101, toMs: KILLED_AT_MS + 200 })).toBe(false);
  });

  it('nothing if the master came back before a replica took over, or if another master was replaced', () => {
    const losses = killed();
    losses.replaced(0);
    expect(losses.allow(underWay)).toBe(false);
    expect([losses.concern(2), losses.mayHaveLost(2)]).toEqual([false, false]);
  });

  it('nothing where writes wait for a replica', () => {
    const losses = killed(false);
    losses.replaced(1);
    expect([losses.allow(underWay), losses.mayHaveLost(2)]).toEqual([false, false]);
    // Its hold may have been seen before it was acknowledged.
    expect(losses.mayVanish(underWay)).toBe(true);
    // Holds of stored calls may still have to be removed.
    expect(losses.concern(2)).toBe(true);
  });

  it('calls whose settlement came late, if that is what the master wrote before its end', () => {
    const ended = { shard: 2, fromMs: KILLED_AT_MS - 2_000, toMs: KILLED_AT_MS - 1_000 };
    const losses = killed();
    losses.addWrites(1, ['late']);
    expect(losses.allow({ ...ended, usageId: 'late' })).toBe(false);
    losses.replaced(1);
    expect([undefined, 'late', 'another'].map((usageId) => losses.allow({ ...ended, usageId }))).toEqual([
      false,
      true,
      false,
    ]);
    const strict = killed(false);
    strict.addWrites(1, ['late']);
    strict.replaced(1);
    expect(strict.allow({ ...ended, usageId: 'late' })).toBe(false);
  });

  it('charges of whole calls, so a drift must be the sum of some of these charges', () => {
    expect([0, 7, 1_007, 2_000, 2_007].every((sum) => isSumOf(sum, [1_000, 7, 1_000]))).toBe(true);
    expect([1, 14, 3_000].some((sum) => isSumOf(sum, [1_000, 7, 1_000]))).toBe(false);
    expect(isSumOf(7, [])).toBe(false);
  });
});

it('the usage id of a call contains the time of the call', () => {
  expect(new Date(timeOf('01a2059d-1d6f-78d0-af80-9ef87daa3053')).toISOString()).toBe('2026-11-22T23:35:12.495Z');
});

it('the time in a usage id is when the call was admitted, even if the clock of its gateway was ahead', () => {
  const nowMs = Date.now();
  expect([uuidv7(nowMs), uuidv7(nowMs + AHEAD_MS)].map(timeOf)).toEqual([nowMs, nowMs]);
});
