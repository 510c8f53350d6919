import { afterEach, describe, expect, it, vi } from 'vitest';
import { Coalescer, type CoalescerOptions, type End } from '../../src/platform/coalescer.ts';
import { isPostgresUnavailable } from '../../src/platform/postgres.ts';
import { CLOCKS } from '../support/clocks.ts';
import { until } from '../support/wait.ts';

const AWAY = new Error('away');

type Options = Omit<CoalescerOptions<number, string>, 'load'> & {
  readonly load: (batch: ReadonlyMap<string, number>, finish: (key: string, end: End<string>) => void) => Promise<void>;
};

/** A coalescer whose `load` the test provides, and which records its batches. The result for a key is the key. */
function coalescer(options: Partial<Options>) {
  const batches: string[][] = [];
  const load = options.load ?? (async () => {});
  const bounds = { maxBatch: 4, maxWaiting: 100, timeoutMs: 5_000, isAway: (error: unknown) => error === AWAY };
  const made = new Coalescer<number, string>({
    ...bounds,
    isAwayForAll: true,
    ...options,
    load: async (batch, finish) => {
      batches.push(Array.from(batch.keys()));
      await load(batch, finish);
      return (key) => key;
    },
  });
  return { batches, askAll: (keys: string) => Promise.allSettled(Array.from(keys, (key) => made.ask(key, 1))) };
}

const rejected = (results: readonly PromiseSettledResult<string>[]) =>
  results.map((result) => (result.status === 'rejected' ? result.reason : null));

describe('a request for a load', () => {
  afterEach(() => void vi.useRealTimers());

  it('is rejected at its deadline, however many batches are ahead', async () => {
    const never = new Promise<void>(() => {});
    vi.useFakeTimers({ toFake: [...CLOCKS] });
    const { batches, askAll } = coalescer({ maxBatch: 1, timeoutMs: 200, load: () => never });
    let errors: unknown[] = [];
    void askAll('abcdefghij').then((results) => {
      errors = rejected(results);
    });
    await new Promise(setImmediate);
    vi.advanceTimersByTime(199);
    await new Promise(setImmediate);
    expect(errors).toEqual([]);
    vi.advanceTimersByTime(1);
    await new Promise(setImmediate);
    expect(errors.map(isPostgresUnavailable)).toEqual(Array(10).fill(true));
    expect(batches).toEqual([['a']]);
  });

  it('is rejected together with the batch ahead if that batch finds the store away', async () => {
    const { batches, askAll } = coalescer({ load: () => Promise.reject(AWAY) });
    expect(rejected(await askAll('abcdefghij'))).toEqual(Array(10).fill(AWAY));
    expect(batches).toEqual([['a', 'b', 'c', 'd']]);
    // A later request is tried again.
    await askAll('x');
    expect(batches[1]).toEqual(['x']);
  });

  it('is rejected at once when the queue is full', async () => {
    let release = () => {};
    const gate = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { batches, askAll } = coalescer({ maxBatch: 2, maxWaiting: 3, load: () => gate });
    const first = askAll('ab');
    await until(() => batches.length === 1);
    const [waiting, beyond] = [askAll('cde'), await askAll('f')];
    expect(rejected(beyond).every(isPostgresUnavailable)).toBe(true);
    release();
    expect(rejected([...(await first), ...(await waiting)])).toEqual(Array(5).fill(null));
  });
});

describe('a batch that fails', () => {
  it('because of two of its keys rejects those two, and loads the others', async () => {
    const load = async (batch: ReadonlyMap<string, number>) => {
      for (const key of 'cf') if (batch.has(key)) throw new Error(key);
    };
    const { askAll } = coalescer({ maxBatch: 8, load });
    const results = rejected(await askAll('abcdefgh'));
    expect(results.map((error) => error?.message)).toEqual([
      undefined,
      undefined,
      'c',
      undefined,
      undefined,
      'f',
      undefined,
      undefined,
    ]);
  });

  it('is not retried for keys whose deadline has passed', async () => {
    let fail = () => {};
    const load = () =>
      new Promise<void>((_, reject) => {
        fail = () => reject(new Error('slow'));
      });
    const { batches, askAll } = coalescer({ timeoutMs: 50, load });
    await askAll('abcd');
    fail();
    const next = askAll('x');
    await until(() => batches.length === 2);
    expect(batches[1]).toEqual(['x']);
    await next;
  });
});
