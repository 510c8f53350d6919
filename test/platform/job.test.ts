import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { Job, type JobOptions } from '../../src/platform/job.ts';
import { CLOCKS } from '../support/clocks.ts';

const EVERY_MS = 1_000;

/** What each round does; the last of them is repeated. */
type Round = (job: Work) => Promise<void> | void;

let lines: string[];
let job: Work;

class Work extends Job {
  /** Number of rounds begun. */
  rounds = 0;
  readonly #does: readonly Round[];

  constructor(options: Partial<JobOptions>, does: readonly Round[]) {
    const log = {
      info: (_: object, line: string) => void lines.push(`info ${line}`),
      warn: (_: object, line: string) => void lines.push(`warn ${line}`),
    };
    super({ everyMs: EVERY_MS, messages: { failing: 'fails', again: 'works again' }, log, ...options });
    this.#does = does;
  }

  protected override async round(): Promise<void> {
    await (this.#does[this.rounds++] ?? this.#does.at(-1))?.(this);
  }

  override nextIn(ms: number): void {
    super.nextIn(ms);
  }

  override paced<T>(work: () => Promise<T>): Promise<T> {
    return super.paced(work);
  }

  get isStopping(): boolean {
    return this.stopping.aborted;
  }
}

beforeEach(() => {
  vi.useFakeTimers({ toFake: [...CLOCKS] });
  lines = [];
});
afterEach(async () => {
  // One that a test left stuck. Only what is pending: what an earlier file left running may set timers for ever.
  const stopped = job.stop(0);
  await vi.runOnlyPendingTimersAsync();
  await stopped;
  vi.useRealTimers();
});

function started(options: Partial<JobOptions>, ...does: Round[]): Work {
  job = new Work(options, does);
  job.start();
  return job;
}

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const fail: Round = () => {
  throw new Error('the store is away');
};
/** A piece of work that lasts this long. */
const lasting = (ms: number) => (): Promise<void> => new Promise((resolve) => void setTimeout(resolve, ms));

it('the first round starts at once, and each next round a pause after the previous one ended', async () => {
  started({}, lasting(300));
  expect(job.rounds).toBe(1);
  await pass(300 + EVERY_MS - 1);
  expect(job.rounds).toBe(1);
  await pass(1);
  expect(job.rounds).toBe(2);
});

it('the first round waits if the job was told to wait', async () => {
  started({ firstMs: 70 });
  await pass(69);
  expect(job.rounds).toBe(0);
  await pass(1);
  expect(job.rounds).toBe(1);
});

it('the job logs one line when rounds begin to fail and one when they succeed again, and may retry sooner in between', async () => {
  started(
    { retryMs: 10 },
    fail,
    fail,
    () => {},
    fail,
    () => {},
  );
  await pass(10);
  expect([job.rounds, lines]).toEqual([2, ['warn fails']]);
  await pass(10);
  expect([job.rounds, lines]).toEqual([3, ['warn fails', 'info works again']]);
  await pass(EVERY_MS + 10);
  expect(job.rounds).toBe(5);
  expect(lines).toEqual(['warn fails', 'info works again', 'warn fails', 'info works again']);
});

it('a successful round sets the next pause, once; a failed round does not', async () => {
  started(
    {},
    (work) => work.nextIn(5),
    (work) => {
      work.nextIn(5);
      throw new Error('after that');
    },
    () => {},
  );
  await pass(5);
  expect(job.rounds).toBe(2);
  await pass(EVERY_MS - 1);
  expect(job.rounds).toBe(2);
  await pass(1);
  expect(job.rounds).toBe(3);
  await pass(EVERY_MS - 1);
  expect(job.rounds).toBe(3);
});

it('the job makes no round while another process does the work, and reports neither failure nor success', async () => {
  let isActive = true;
  started({ isActive: () => isActive }, fail, () => {});
  isActive = false;
  await pass(5 * EVERY_MS);
  expect([job.rounds, lines]).toEqual([1, ['warn fails']]);
  isActive = true;
  await pass(EVERY_MS);
  expect([job.rounds, lines]).toEqual([2, ['warn fails', 'info works again']]);
});

it('a wake in a pause starts a round at once, and a wake in a round starts another one afterwards', async () => {
  started({}, lasting(100));
  await pass(150);
  job.wake();
  await pass(0);
  expect(job.rounds).toBe(2);
  job.wake();
  job.wake();
  await pass(99);
  expect(job.rounds).toBe(2);
  await pass(1);
  expect(job.rounds).toBe(3);
  await pass(100 + EVERY_MS - 1);
  expect(job.rounds).toBe(3);
});

it('the rest after paced work is in proportion to the work, within a bound, whether the work succeeds or not', async () => {
  const ended: string[] = [];
  started({ busyShare: 0.2, longestRestMs: 1_000 }, async (work) => {
    ended.push(await work.paced(() => lasting(50)().then(() => 'short')));
    await work.paced(() => lasting(50)().then(fail as never)).catch(() => ended.push('failed'));
    await work.paced(lasting(5_000));
    ended.push('long');
  });
  await pass(50 + 199);
  expect(ended).toEqual([]);
  await pass(1);
  expect(ended).toEqual(['short']);
  await pass(50 + 200);
  expect(ended).toEqual(['short', 'failed']);
  await pass(5_000 + 999);
  expect(ended).toEqual(['short', 'failed']);
  await pass(1);
  expect(ended).toEqual(['short', 'failed', 'long']);
});

it('a stop during paced work skips the rest', async () => {
  let isOver = false;
  started({ busyShare: 0.5 }, async (work) => {
    await work.paced(lasting(400));
    isOver = true;
  });
  const stopped = job.stop();
  await pass(400);
  expect(isOver).toBe(true);
  await stopped;
});

it('a wake does not shorten a rest, and a stop does', async () => {
  let isOver = false;
  started({ busyShare: 0.5 }, async (work) => {
    await work.paced(lasting(400));
    isOver = true;
  });
  await pass(400);
  job.wake();
  await pass(100);
  expect(isOver).toBe(false);
  await job.stop();
  expect([isOver, job.rounds]).toEqual([true, 1]);
});

it('a stop notifies the round under way and waits for it, and no other round follows', async () => {
  let isTold = false;
  started({}, async (work) => {
    await lasting(300)();
    isTold = work.isStopping;
  });
  let isStopped = false;
  const stopped = job.stop(1_000).then(() => {
    isStopped = true;
  });
  await pass(299);
  expect(isStopped).toBe(false);
  await pass(1);
  await stopped;
  expect(isTold).toBe(true);
  job.wake();
  job.start();
  await pass(10 * EVERY_MS);
  expect(job.rounds).toBe(1);
});

it.each<[string, Round, Round, string[]]>([
  ['succeeds', fail, () => {}, ['warn fails']],
  ['fails', () => {}, fail, []],
])('a stop is bounded; a round that %s after the stop logs nothing and is the last', async (_, first, end, said) => {
  started({}, first, (work) => lasting(5_000)().then(() => end(work)));
  await pass(EVERY_MS);
  expect(job.rounds).toBe(2);
  let isStopped = false;
  void job.stop(200).then(() => {
    isStopped = true;
  });
  await pass(199);
  expect(isStopped).toBe(false);
  await pass(1);
  expect(isStopped).toBe(true);
  await pass(10 * EVERY_MS);
  expect([job.rounds, lines]).toEqual([2, said]);
});

it('a stop in a pause, or before the first round, ends the job at once', async () => {
  started({});
  await job.stop();
  await pass(10 * EVERY_MS);
  expect(job.rounds).toBe(1);
  started({ firstMs: 50 });
  await job.stop();
  await pass(10 * EVERY_MS);
  expect(job.rounds).toBe(0);
});

it('a job that is started twice still makes one round at a time', async () => {
  started({}, lasting(10));
  job.start();
  await pass(10);
  expect(job.rounds).toBe(1);
});
