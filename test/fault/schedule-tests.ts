import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Outcome } from './course.ts';
import { Market } from './market.ts';
import { describePlan, type Plan } from './plan.ts';
import { report } from './report.ts';
import type { Stack } from './stack.ts';

/** The seeds that `npm run test:fault` has asked for. @param suite those that run as a part of the suite */
export function wantedSeeds(suite: readonly number[]): readonly number[] {
  const { FAULT_SEED, FAULT_SCHEDULES, FAULT_TIMES } = process.env;
  if (FAULT_SEED === undefined) return suite;
  const seeds = Array.from({ length: Number(FAULT_SCHEDULES) }, (_, i) => Number(FAULT_SEED) + i);
  return Array.from({ length: Number(FAULT_TIMES) }, () => seeds).flat();
}

/** One test for each seed, all on one stack. To be called within `describe`. @returns the stack, for tests that follow */
export function testSchedules<P extends Plan>(options: {
  readonly seeds: readonly number[];
  readonly timeoutMs: number;
  readonly start: () => Promise<Stack>;
  readonly makePlan: (seed: number) => P;
  readonly run: (stack: Stack, market: Market, plan: P) => Promise<Outcome>;
  /** The plan in words, for the report of a failure. */
  readonly describe?: (plan: P) => string;
  /** After a failure the next schedules run on another stack. Default: they are skipped. */
  readonly goesOn?: boolean;
}): () => { readonly stack: Stack; readonly market: Market } {
  const { seeds, timeoutMs, start, makePlan, run, describe = describePlan, goesOn = false } = options;
  let stack: Stack | null = null;
  let market: Market;
  const outcomes: Outcome[] = [];
  let failedSeed: number | null = null;

  const open = async (): Promise<Stack> => {
    stack = await start();
    market = await Market.open(stack);
    return stack;
  };
  beforeAll(async () => {
    await open();
  });

  afterAll(async () => {
    await stack?.stop();
    report(outcomes);
  });

  it.for(seeds)('seed %i', { timeout: timeoutMs }, async (seed, { skip, signal }) => {
    // Once money has gone wrong, the books prove nothing about the next schedule.
    skip(failedSeed !== null && !goesOn, `seed ${failedSeed} has failed`);
    const on = stack ?? (await open());
    const plan = makePlan(seed);
    const words = describe(plan);
    signal.addEventListener('abort', () =>
      console.error([words, `under way: ${on.underWay.describe()}`, on.lastLines(60)].join('\n')),
    );
    try {
      const outcome = await run(on, market, plan);
      outcomes.push(outcome);
      expect(outcome.faults, [words, ...outcome.faults].join('\n')).toEqual([]);
      expect(outcome.looks).toBeGreaterThan(0);
    } catch (error) {
      failedSeed = seed;
      console.error(words);
      console.error(on.lastLines(30));
      if (goesOn) {
        stack = null;
        await on.stop();
      }
      throw error;
    }
  });

  return () => {
    if (stack === null) throw new Error('there is no stack');
    return { stack, market };
  };
}
