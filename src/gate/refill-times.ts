import { type RateState, UNITS_PER_REQUEST } from '../admission/codes.ts';
import type { Clock } from '../platform/clock.ts';

/**
 * Decides when each caller that one bucket refuses should come again. Suppose that sixty callers of a key with 60 requests a minute
 * are refused at once, and all are told to wait a second. Then 59 of them are refused again, and most client libraries give up
 * after two retries. So each refusal promises the caller a *refill*: a moment at which one more token is there.
 *
 *   tokens now ──► 1st refill ──► 2nd ──► … ──► bucket full          a refill every 60 000 / limit ms
 *
 * If all callers come back at the promised time, there is a token for each. Nothing is reserved: a new caller may take a token that
 * was promised to another. When all refills until the bucket is full have been promised, the first one is promised again. Otherwise
 * a single caller that asks without pause would make the others wait longer and longer.
 *
 * Refills are kept in memory, because a flood of refused requests must stay cheap: 0.06 µs each, and no trip to Redis. A worker
 * therefore knows only its own refusals. Each of n workers promises every nth refill; the wall clock, which they share, decides
 * which refills belong to which worker.
 *
 * Time is counted in the bucket's units here, `limit` of them to a millisecond. They are integers, so that sums of intervals
 * such as 60 000 / 7 ms stay exact.
 */
export class RefillTimes {
  readonly #clock: Clock;
  readonly #worker: number;
  readonly #workers: number;

  /**
   * @param worker   the number of this worker process, from 1
   * @param workers  how many worker processes serve this port
   */
  constructor(clock: Clock, worker = 1, workers = 1) {
    this.#clock = clock;
    this.#worker = worker;
    this.#workers = workers;
  }

  /**
   * Promises the next refill.
   *
   * @param bucket  keeps the last refill promised; 0 at first
   * @param rate    the bucket's state when it refused the request
   * @returns whole seconds to wait; at least 1
   */
  next(bucket: { lastRefill: number }, { limit, tokens }: RateState): number {
    const now = this.#clock() * limit;
    // If a minute has fewer refills than there are workers, some workers share a refill.
    const sharing = Math.min(this.#workers, limit);
    const first = this.#ownFrom(now + UNITS_PER_REQUEST - tokens, sharing);
    const following = bucket.lastRefill + sharing * UNITS_PER_REQUEST;
    const full = now + limit * UNITS_PER_REQUEST - tokens;
    const refill = following > full ? first : Math.max(first, following);
    bucket.lastRefill = refill;
    return Math.max(1, Math.ceil((refill - now) / limit / 1000));
  }

  /** The first refill at or after the given one that belongs to this worker. */
  #ownFrom(refill: number, sharing: number): number {
    if (sharing === 1) return refill;
    const owner = Math.floor(refill / UNITS_PER_REQUEST) % sharing;
    return refill + ((this.#worker + sharing - owner) % sharing) * UNITS_PER_REQUEST;
  }
}
