// Whatever happens to both stores, one fault after the other: nothing is lost but what a fault took from the last store that had it, and
// in the end wallets are what Postgres says. `npm run test:fault -- --histories --seed N --schedules M` runs the histories of seeds N to
// N + M − 1, with `--cluster` those of a Redis Cluster, and with `--clocks` clocks jump ahead besides.

import { describe } from 'vitest';
import { GROUPS } from './cluster/nodes.ts';
import { describeHistory, makeClusterHistoryPlan, makeHistoryPlan, withClocks } from './history/plan.ts';
import { runHistory } from './history/schedule.ts';
import { testSchedules, wantedSeeds } from './schedule-tests.ts';
import { Stack } from './stack.ts';

const inCluster = process.env.FAULT_CLUSTER === '1';
const hasClocks = process.env.FAULT_CLOCKS === '1';
const seeds = wantedSeeds([27, 34]);

describe('after any history of faults, Postgres, streams and holds agree', () => {
  testSchedules({
    seeds,
    // Each wait on the way has a bound of its own, most of 20 s. This one ends what has none.
    timeoutMs: 180_000,
    start: () => Stack.start(inCluster ? 'cluster' : 'one redis', {}, { forHistories: true, withClocks: hasClocks }),
    makePlan: (seed) => {
      const plan = inCluster ? makeClusterHistoryPlan(seed, GROUPS) : makeHistoryPlan(seed);
      return hasClocks ? withClocks(plan) : plan;
    },
    run: runHistory,
    describe: describeHistory,
    goesOn: true,
  });
});
