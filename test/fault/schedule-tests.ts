import { afterAll, beforeAll, expect, it } from 'vitest';
import { Market } from './market.ts';
import { describePlan, type Plan } from './plan.ts';
import { report } from './report.ts';
import { type Outcome, runSchedule } from './schedule.ts';
import type { Stack } from './stack.ts';

/** One test for each seed, all on one stack. To be called within `describe`. */
export function testSchedules(options: {
  readonly seeds: readonly number[];
  readonly timeoutMs: number;
  readonly start: () => Promise<Stack>;
  readonly makePlan: (seed: number) => Plan;
  readonly mayLose?: boolean;
}): void {
  const { seeds, timeoutMs, start, makePlan, mayLose = true } = options;
  let stack: Stack;
  let market: Market;
  const outcomes: Outcome[] = [];
  let failedSeed: number | null = null;

  beforeAll(async () => {
    stack = await start();
    market = await Market.open(stack);
  });

  afterAll(async () => {
    await stack?.stop();
    report(outcomes);
  });

  it.for(seeds)('seed %i', { timeout: timeoutMs }, async (seed, { skip }) => {
    // Once money has gone wrong, the books prove nothing about the next schedule.
    skip(failedSeed !== null, `seed ${failedSeed} has failed`);
    const plan = makePlan(seed);
    try {
      const outcome = await runSchedule(stack, market, plan, { mayLose });
      outcomes.push(outcome);
      expect(outcome.faults, describePlan(plan)).toEqual([]);
      expect(outcome.looks).toBeGreaterThan(0);
    } catch (error) {
      failedSeed = seed;
      console.error(describePlan(plan));
      console.error(stack.lastLines(30));
      throw error;
    }
  });
}
