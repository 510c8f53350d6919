import { afterEach, expect, it, vi } from 'vitest';
import { ReconcileJob } from '../../../src/ledger/reconcile/reconcile-job.ts';
import type { Reconciler } from '../../../src/ledger/reconcile/reconciler.ts';
import { CLOCKS } from '../../support/clocks.ts';
import { QUIET } from '../../support/store.ts';
import { until } from '../../support/wait.ts';

const jobs: ReconcileJob[] = [];
afterEach(() => Promise.all(jobs.splice(0).map((job) => job.stop())));

/**
 * Starts a job with a fake reconciler. `left`: number of undecided accounts after each run. `behind`: the shards that each run could not
 * compare. `isUnchanged`: what it says before a regular run.
 */
function start({
  isActive = true,
  everyMs = 1,
  left = [] as readonly number[],
  behind = [] as readonly number[][],
  isUnchanged = async () => false,
}) {
  const seen = { runs: 0, redisIsBack: () => {} };
  const reconciler = {
    repaired: 0,
    isUnchanged,
    run: async () => {
      const run = seen.runs++;
      return { reports: [], undecided: left[run] ?? 0, behind: behind[run] ?? [], endedAtMs: 0 };
    },
    stop: () => {},
  } as unknown as Reconciler;
  const onRedisReady = (listener: () => void): void => {
    seen.redisIsBack = listener;
  };
  const job = new ReconcileJob({ reconciler, isActive: () => isActive, onRedisReady, everyMs, log: QUIET });
  jobs.push(job);
  job.start();
  return seen;
}

it('when a run leaves repairs to the next run, that run follows at once instead of a minute later', async () => {
  const seen = start({ left: [2, 1, 0], everyMs: 60_000 });
  await until(() => seen.runs === 3);
});

it('a shard whose writer was behind is compared again within seconds, even by an inactive process', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  try {
    const seen = start({ isActive: false, behind: [[3], [3], []], everyMs: 60_000 });
    await vi.advanceTimersByTimeAsync(20_000);
    expect(seen.runs).toBe(3);
  } finally {
    vi.useRealTimers();
  }
});

it('it looks every minute, and compares every ten minutes if nothing changes, or at once when Redis comes back', async () => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  try {
    const looks: boolean[] = [];
    const isUnchanged = async () => {
      const isChanged = looks.length === 25;
      looks.push(isChanged);
      return !isChanged;
    };
    const seen = start({ isUnchanged, everyMs: 60_000 });
    await vi.advanceTimersByTimeAsync(21.5 * 60_000);
    expect([seen.runs, looks.length]).toEqual([3, 21]);
    seen.redisIsBack();
    await vi.advanceTimersByTimeAsync(0);
    expect([seen.runs, looks.length]).toEqual([4, 21]);
    await vi.advanceTimersByTimeAsync(4.5 * 60_000);
    expect([seen.runs, looks.length]).toEqual([4, 25]);
    await vi.advanceTimersByTimeAsync(60_000);
    expect(seen.runs).toBe(5);
  } finally {
    vi.useRealTimers();
  }
});

it('after a look that found an older Postgres, the next look follows at once, and the next comparison is not skipped', async () => {
  let [looks, isOlder] = [0, true];
  const seen = start({
    isUnchanged: async () => {
      looks++;
      if (isOlder) throw new Error('this Postgres is older than Redis');
      return true;
    },
  });
  await until(() => looks === 1);
  isOlder = false;
  await until(() => seen.runs === 2);
});

it('an inactive process completes one run whenever Redis comes back, because its sweep waits for that run', async () => {
  const [working, idle] = [start({}), start({ isActive: false, left: [1, 0, 0] })];
  await until(() => idle.runs === 2);
  const before = working.runs;
  await until(() => working.runs > before + 2);
  expect(idle.runs).toBe(2);
  idle.redisIsBack();
  await until(() => idle.runs === 3);
});

it('the jobs of a cluster log one line when they fail together, and one more when they fail again', async () => {
  const lines: string[] = [];
  const log = { ...QUIET, warn: (_fields: object, message: string) => void lines.push(message) };
  const failing = new Set<ReconcileJob>();
  let [isAway, runs] = [true, 0];
  const run = async () => {
    runs++;
    if (isAway) throw new Error('postgres is away');
    return { reports: [], undecided: 0, behind: [], endedAtMs: 0 };
  };
  for (let shard = 0; shard < 16; shard++) {
    const reconciler = { repaired: 0, isUnchanged: async () => false, run, stop: () => {} } as unknown as Reconciler;
    jobs.push(new ReconcileJob({ reconciler, isActive: () => true, onRedisReady: () => {}, everyMs: 1, log, failing }));
  }
  for (const job of jobs) job.start();
  await until(() => runs >= 16);
  await until(() => failing.size === 16);
  isAway = false;
  await until(() => failing.size === 0);
  isAway = true;
  await until(() => failing.size === 16);
  expect(lines).toEqual(Array(2).fill('cannot compare redis with postgres now: retrying'));
});
