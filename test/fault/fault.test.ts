// Whatever process dies at whatever moment, every call is either charged or refunded, exactly once, and the books balance to
// the micro-dollar. `npm run test:fault -- --seed N --schedules M` runs the schedules of seeds N to N + M − 1.

import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Market } from './market.ts';
import { describePlan, makePlan } from './plan.ts';
import { report } from './report.ts';
import { type Outcome, runSchedule } from './schedule.ts';
import { Stack } from './stack.ts';

const firstSeed = Number(process.env.FAULT_SEED ?? 1);
const schedules = Number(process.env.FAULT_SCHEDULES ?? 24);
const seeds = Array.from({ length: schedules }, (_, i) => firstSeed + i);

describe('money is neither lost nor doubled', () => {
  let stack: Stack;
  let market: Market;
  const outcomes: Outcome[] = [];
  let failedSeed: number | null = null;

  beforeAll(async () => {
    stack = await Stack.start();
    market = await Market.open(stack);
  });

  afterAll(async () => {
    await stack?.stop();
    report(outcomes);
  });

  it.for(seeds)('seed %i', { timeout: 60_000 }, async (seed, { skip }) => {
    // Once money has gone wrong, the books prove nothing about the next schedule.
    skip(failedSeed !== null, `seed ${failedSeed} has failed`);
    const plan = makePlan(seed);
    try {
      const outcome = await runSchedule(stack, market, plan);
      outcomes.push(outcome);
      expect(outcome.faults, describePlan(plan)).toEqual([]);
      expect(outcome.looks).toBeGreaterThan(0);
    } catch (error) {
      failedSeed = seed;
      console.error(describePlan(plan));
      throw error;
    }
  });
});
