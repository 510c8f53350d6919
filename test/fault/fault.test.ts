// Whatever process dies at whatever moment, every call is either charged or refunded, exactly once, and the books balance to
// the micro-dollar. `npm run test:fault -- --seed N --schedules M` runs the schedules of seeds N to N + M − 1.

import { describe } from 'vitest';
import { makePlan } from './plan.ts';
import { runSchedule } from './schedule.ts';
import { testSchedules, wantedSeeds } from './schedule-tests.ts';
import { Stack } from './stack.ts';

const seeds = wantedSeeds(Array.from({ length: 24 }, (_, i) => i + 1));

describe('money is neither lost nor doubled', () => {
  testSchedules({ seeds, timeoutMs: 60_000, start: () => Stack.start(), makePlan, run: runSchedule });
});
