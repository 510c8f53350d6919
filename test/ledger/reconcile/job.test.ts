import { afterEach, it } from 'vitest';
import { ReconcileJob } from '../../../src/ledger/reconcile/job.ts';
import type { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { QUIET } from '../../admission/redis.ts';
import { until } from '../../support/wait.ts';

let job: ReconcileJob | null = null;
afterEach(() => job?.stop());

it('a run that leaves repairs to the next is followed by it at once, not a minute later', async () => {
  const left = [2, 1, 0];
  let runs = 0;
  const reconciler = {
    repaired: 0,
    run: async () => ({ reports: [], undecided: left[runs++] ?? 0, endedAtMs: 0 }),
    stop: () => {},
  } as unknown as Reconciler;
  job = new ReconcileJob({ reconciler, isActive: () => true, onRedisReady: () => {}, log: QUIET });
  job.start();
  await until(() => runs === 3);
});
