import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { rateState, UNITS_PER_REQUEST } from '../../src/admission/codes.ts';
import { RefillTimes } from '../../src/gate/refill-times.ts';

/** A bucket as batch.lua keeps it: `limit` units come back per millisecond, up to `limit` requests. */
class Bucket {
  readonly limit: number;
  tokens: number;
  #at: number;

  constructor(limit: number, tokens: number, at: number) {
    this.limit = limit;
    this.tokens = tokens;
    this.#at = at;
  }

  /**
   * @param at  the time of a request, no earlier than that of the last one
   * @returns whether the request is admitted
   */
  take(at: number): boolean {
    this.tokens = Math.min(this.limit * UNITS_PER_REQUEST, this.tokens + (at - this.#at) * this.limit);
    this.#at = at;
    if (this.tokens < UNITS_PER_REQUEST) return false;
    this.tokens -= UNITS_PER_REQUEST;
    return true;
  }

  get rate() {
    return rateState(this.limit, this.tokens);
  }
}

const START = 1_790_000_000_000;

type Worker = { readonly refills: RefillTimes; readonly bucket: { lastRefill: number } };

function workers(count: number, clock: () => number): Worker[] {
  return Array.from({ length: count }, (_, i) => ({
    refills: new RefillTimes(clock, i + 1, count),
    bucket: { lastRefill: 0 },
  }));
}

describe('callers that are refused at the same time', () => {
  it('are all admitted if they return at the stated time or slightly later, whichever workers refused them', () => {
    const scene = fc.record({
      limit: fc.integer({ min: 1, max: 300 }),
      /** Units in the bucket at first: too few for a request. */
      tokens: fc.integer({ min: 0, max: UNITS_PER_REQUEST - 1 }),
      workers: fc.integer({ min: 1, max: 4 }),
      start: fc.integer({ min: 0, max: 1_000_000 }),
      /**
       * For each caller: when it is refused, as a share of the time to the first token; the worker; and how many milliseconds late it
       * comes back.
       */
      refused: fc.array(
        fc.record({
          at: fc.double({ min: 0, max: 0.99, noNaN: true }),
          by: fc.nat(3),
          late: fc.integer({ min: 0, max: 900 }),
        }),
        { minLength: 1, maxLength: 300 },
      ),
    });
    fc.assert(
      fc.property(scene, ({ limit, tokens, workers: count, start, refused }) => {
        let now = START + start;
        const bucket = new Bucket(limit, tokens, now);
        const all = workers(count, () => now);
        // Each worker has its own share of the refills up to the full bucket.
        const left = Array.from({ length: count }, () => Math.floor(limit / count));
        const untilFirst = (UNITS_PER_REQUEST - tokens) / limit;
        const times = refused.map(({ at, ...rest }) => ({ ...rest, at: START + start + Math.floor(at * untilFirst) }));
        const back: number[] = [];
        for (const { at, by, late } of times.sort((a, b) => a.at - b.at)) {
          const worker = all[by % count] as Worker;
          if ((left[by % count] as number) === 0) continue;
          left[by % count] = (left[by % count] as number) - 1;
          now = at;
          expect(bucket.take(now)).toBe(false);
          const seconds = worker.refills.next(worker.bucket, bucket.rate);
          expect(seconds).toBeLessThanOrEqual(60);
          back.push(now + seconds * 1000 + late);
        }
        for (const at of back.sort((a, b) => a - b)) expect(bucket.take(at)).toBe(true);
      }),
      { numRuns: 500 },
    );
  });

  it('are told to wait whole seconds, from the first token to the full bucket', () => {
    const [worker] = workers(1, () => START) as [Worker];
    const told = (limit: number, refusals: number): number[] =>
      Array.from({ length: refusals }, () => worker.refills.next(worker.bucket, rateState(limit, 0)));
    expect(told(60, 60)).toEqual(Array.from({ length: 60 }, (_, i) => i + 1));
  });

  it('are never told to wait longer than the bucket takes to fill, however often one of them asks', () => {
    let now = START;
    const bucket = new Bucket(60, 30_000, now);
    const [worker] = workers(1, () => now) as [Worker];
    const told: number[] = [];
    for (let i = 0; i < 1_000; i++, now++) {
      if (!bucket.take(now)) told.push(worker.refills.next(worker.bucket, bucket.rate));
    }
    expect(Math.max(...told)).toBe(60);
    // After the last refill before the bucket is full, the refills begin again at the first.
    expect(told.filter((seconds) => seconds === 1).length).toBeGreaterThan(10);
  });

  it('get the first refill again after a long time, or after the clock was set back', () => {
    let now = START;
    const [worker] = workers(1, () => now) as [Worker];
    const told = (): number => worker.refills.next(worker.bucket, rateState(60, 0));
    expect([told(), told(), told()]).toEqual([1, 2, 3]);
    now += 3_600_000;
    expect([told(), told()]).toEqual([1, 2]);
    now -= 7_200_000;
    expect([told(), told()]).toEqual([1, 2]);
  });

  it('get a time from every worker, even if there are fewer refills per minute than workers', () => {
    for (const worker of workers(8, () => START)) {
      expect(worker.refills.next(worker.bucket, rateState(1, 0))).toBe(60);
      expect(worker.refills.next(worker.bucket, rateState(1, 0))).toBe(60);
    }
  });
});
