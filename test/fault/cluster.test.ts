// Whatever happens to the nodes of a Redis Cluster: every call is charged or refunded, exactly once, and wallets lack no more than
// what a failover may lose, which the comparison reports. `npm run test:fault -- --cluster --seed N --schedules M` runs the schedules
// of seeds N to N + M − 1.

import { describe } from 'vitest';
import { makeClusterPlan } from './cluster/plan.ts';
import { runSchedule } from './schedule.ts';
import { testSchedules, wantedSeeds } from './schedule-tests.ts';
import { Stack } from './stack.ts';

/** In the suite: a failover by hand, and a master that is cut off from everybody. */
const seeds = wantedSeeds([9, 21]);

/** Admissions and settlements count only when a replica has them. Then nothing may be lost, whatever fails. */
const waits = process.env.FAULT_WAIT === '1';

// Only Linux lets a node connect from an address in 127.0.1.0/24 that nobody has set up.
const onLinux = describe.skipIf(process.platform !== 'linux');

onLinux('a cluster loses no more than a failover may lose, and doubles nothing', () => {
  testSchedules({
    seeds,
    timeoutMs: 180_000,
    makePlan: makeClusterPlan,
    run: (stack, market, plan) => runSchedule(stack, market, plan, { mayLose: !waits }),
    start: () => Stack.start('cluster', waits ? { REDIS_WAIT_REPLICAS: '1' } : {}),
  });
});
