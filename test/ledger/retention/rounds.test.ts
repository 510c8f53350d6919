import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { RetentionJob, type RoundEnd } from '../../../src/ledger/retention/retention-job.ts';
import { CLOCKS } from '../../support/clocks.ts';
import { QUIET } from '../../support/store.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: [...CLOCKS] }));
afterEach(() => void vi.useRealTimers());

/** A job whose rounds end like this, and which is started. `runs` counts them. */
function started(
  retentionDays: number,
  ends: readonly (RoundEnd | 'failed')[],
): { job: RetentionJob; runs: () => number } {
  const job = new RetentionJob({
    databaseUrl: '',
    installation: '',
    retentionDays,
    exportDir: null,
    log: QUIET,
    firstMs: 30,
    everyMs: 1_000,
    retryMs: 300,
  });
  const run = vi.spyOn(job, 'runOnce');
  for (const end of ends) {
    if (end === 'failed') run.mockRejectedValueOnce(new Error('a test'));
    else run.mockResolvedValueOnce(end);
  }
  run.mockResolvedValue('done');
  job.start();
  return { job, runs: () => run.mock.calls.length };
}

it('a round that finds locks taken is repeated sooner; the pauses double up to the usual pause', async () => {
  const { job, runs } = started(7, ['locked', 'locked', 'locked', 'elsewhere', 'locked', 'failed', 'locked', 'done']);
  for (const pauseMs of [30, 300, 600, 1_000, 1_000, 300, 1_000, 300, 1_000]) {
    const before = runs();
    await vi.advanceTimersByTimeAsync(pauseMs - 1);
    expect(runs()).toBe(before);
    await vi.advanceTimersByTimeAsync(1);
    expect(runs()).toBe(before + 1);
  }
  await job.stop();
});

it('nothing is dropped if all calls are to be kept', async () => {
  const { job, runs } = started(0, []);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(runs()).toBe(0);
  await job.stop();
});
