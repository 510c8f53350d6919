// Whatever process dies at whatever moment, every call is either charged or refunded, exactly once, and the books balance to
// the micro-dollar. `npm run test:fault -- --seed N --schedules M` runs the schedules of seeds N to N + M − 1, and
// `npm run test:fault -- --pairs N` only N pairs of equal calls.

import { describe, expect, it } from 'vitest';
import { describePairs, runPairs } from './pairs.ts';
import { makePlan } from './plan.ts';
import { runSchedule } from './schedule.ts';
import { testSchedules, wantedSeeds } from './schedule-tests.ts';
import { Stack } from './stack.ts';

/** Between them they have 35 of the 43 kinds of fault that a part or a link can have, and the gateway killed; 1 to 24 have 25. */
const seeds = wantedSeeds([12, 13, 18, 28, 39, 43, 140, 197, 211, 652]);

const { FAULT_PAIRS, FAULT_SEED } = process.env;
/** Few in the suite: a round of ten takes about a second. */
const pairs = Number(FAULT_PAIRS ?? (FAULT_SEED === undefined ? 30 : 0));
/** In the suite: a gateway and the writer are killed, and replies to callers are cut. */
const pairsSeed = Number(FAULT_SEED ?? 38);

describe('money is neither lost nor doubled', () => {
  const on = testSchedules({ seeds, timeoutMs: 180_000, start: () => Stack.start(), makePlan, run: runSchedule });

  it.skipIf(pairs === 0)(
    'only one of two equal calls at two gateways is charged when both are repeated until both have the answer',
    { timeout: 180_000 + 3_000 * pairs },
    async () => {
      const { stack, market } = on();
      const outcome = await runPairs(stack, market, pairs, pairsSeed);
      console.log(describePairs(outcome));
      expect(outcome.faults, outcome.faults.join('\n')).toEqual([]);
      expect(outcome.pairs).toHaveLength(pairs);
    },
  );
});
