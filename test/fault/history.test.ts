// Whatever happens to both stores, one fault after the other: nothing is lost but what a fault took from the last store that had it, and
// in the end wallets are what Postgres says. `npm run test:fault -- --histories --seed N --schedules M` runs the histories of seeds N to
// N + M − 1, and with `--cluster` those of a Redis Cluster.

import { describe } from 'vitest';
import { GROUPS } from './cluster/nodes.ts';
import { describeHistory, makeClusterHistoryPlan, makeHistoryPlan } from './history/plan.ts';
import { runHistory } from './history/schedule.ts';
import { testSchedules } from './schedule-tests.ts';
import { Stack } from './stack.ts';

const inCluster = process.env.FAULT_CLUSTER === '1';
const seeds =
  process.env.FAULT_SEED === undefined
    ? [27, 34]
    : Array.from({ length: Number(process.env.FAULT_SCHEDULES) }, (_, i) => Number(process.env.FAULT_SEED) + i);

describe('whatever the history, Postgres, streams and holds are the truth', () => {
  testSchedules({
    seeds,
    timeoutMs: 90_000,
    start: () => Stack.start(inCluster ? 'cluster' : 'one redis', {}, { forHistories: true }),
    makePlan: (seed) => (inCluster ? makeClusterHistoryPlan(seed, GROUPS) : makeHistoryPlan(seed)),
    run: runHistory,
    describe: describeHistory,
    goesOn: true,
  });
});
