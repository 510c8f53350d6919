import { type RateState, UNITS_PER_REQUEST } from '../admission/codes.ts';
import type { Clock } from '../platform/clock.ts';

/**
 * When each of the callers that one bucket refuses should come again. A key of 60 a minute that refuses sixty callers at once, and
 * tells all of them to wait for a second, refuses 59 of them again: most client libraries give up after two retries. So each
 * refusal promises the next place in the refill:
 *
 *   tokens now ──► 1st place ──► 2nd ──► … ──► bucket full          a place every 60 000 / limit ms
 *
 * If all of them heed it, there is a token for each. Nothing is reserved: a new caller may take a token that was promised to another.
 * Beyond the time to a full bucket the places begin again. Otherwise one caller that asks without a pause would make the others
 * wait longer and longer.
 *
 * Kept in memory, because a flood of refused calls must stay cheap: no trip, 0.06 µs. A worker therefore knows of its own
 * refusals only. Each of n workers promises every nth place; the wall clock, which they share, says which ones are whose.
 *
 * Time is counted in units of the bucket here, `limit` to a millisecond: integers, so that sums of 60 000 / 7 stay exact.
 */
export class RefillPlaces {
  readonly #clock: Clock;
  readonly #worker: number;
  readonly #workers: number;

  /**
   * @param worker   the number of this process
   * @param workers  how many there are on this port
   */
  constructor(clock: Clock, worker = 1, workers = 1) {
    this.#clock = clock;
    this.#worker = worker;
    this.#workers = workers;
  }

  /**
   * Promises the next place.
   *
   * @param bucket  where the last place promised is kept; 0 in the beginning
   * @param rate    of the refusal
   * @returns whole seconds to wait; at least 1
   */
  next(bucket: { lastPlace: number }, { limit, tokens }: RateState): number {
    const now = this.#clock() * limit;
    // With fewer places than workers some share theirs.
    const sharing = Math.min(this.#workers, limit);
    const first = this.#ownFrom(now + UNITS_PER_REQUEST - tokens, sharing);
    const following = bucket.lastPlace + sharing * UNITS_PER_REQUEST;
    const full = now + limit * UNITS_PER_REQUEST - tokens;
    const place = following > full ? first : Math.max(first, following);
    bucket.lastPlace = place;
    return Math.max(1, Math.ceil((place - now) / limit / 1000));
  }

  /** The first place from the given one on that is this worker's. */
  #ownFrom(place: number, sharing: number): number {
    if (sharing === 1) return place;
    const theirs = Math.floor(place / UNITS_PER_REQUEST) % sharing;
    return place + ((this.#worker + sharing - theirs) % sharing) * UNITS_PER_REQUEST;
  }
}
