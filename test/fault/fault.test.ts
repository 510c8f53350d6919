// Whatever process dies at whatever moment, every call is either charged or refunded, exactly once, and the books balance to
// the micro-dollar. `npm run test:fault -- --seed N --schedules M` runs the schedules of seeds N to N + M − 1.

import { describe } from 'vitest';
import { makePlan } from './plan.ts';
import { runSchedule } from './schedule.ts';
import { testSchedules, wantedSeeds } from './schedule-tests.ts';
import { Stack } from './stack.ts';

/** Between them they have 35 of the 43 kinds of fault that a part or a link can have, and the gateway killed; 1 to 24 have 25. */
const seeds = wantedSeeds([12, 13, 18, 28, 39, 43, 140, 197, 211, 652]);

describe('money is neither lost nor doubled', () => {
  testSchedules({ seeds, timeoutMs: 60_000, start: () => Stack.start(), makePlan, run: runSchedule });
});
