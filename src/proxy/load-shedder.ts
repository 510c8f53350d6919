/** How often the delay of the event loop is measured: by one timer for the process, at no cost per call. */
const SAMPLE_MS = 50;
/**
 * A sample with a longer delay counts as late. A call takes about four turns of the event loop, and each turn can be this late.
 * All four together must stay within the timeout for Redis's replies (500 ms by default).
 */
const MAX_DELAY_MS = 100;
/**
 * Shedding starts when every sample has been late for this long. A burst of new connections or a pause of the garbage collector
 * ends sooner.
 */
const STANDING_MS = 500;
/** Increase of the share of new calls that are shed, for each further late sample. */
const SHARE_STEP = 0.0625;
/**
 * Maximum share of new calls that are shed: one for every three accepted. Refusing a call costs about a third of the CPU of
 * accepting it. So at this share a tenth of the CPU goes into refusals (1 × ⅓ against 3 × 1) and nine tenths into calls, on any
 * machine. Without a maximum, a process whose callers retry at once would do little but refuse. The accepted calls have to wait,
 * but at most one per connection, and callers that obey Retry-After stay away for a second.
 */
const MAX_SHARE = 0.25;
/** When halving makes the share smaller than this, it becomes 0. */
const LEAST_SHARE = 0.02;
/**
 * After this many samples without a request (1 s), and once no call is shed, the timer stops until the next request: an idle
 * process delays nobody.
 */
const REST_AFTER_SAMPLES = 20;

type LoadShedderOptions = {
  /** The time in milliseconds, from a clock that never goes back. */
  readonly now?: () => number;
  /** A random number, at least 0 and less than 1. */
  readonly random?: () => number;
};

/**
 * Decides which calls an overloaded process refuses at once.
 *
 * It measures how late a timer fires, because all other work that is ready waits just as long. As in CoDel, what counts is the
 * *standing* delay, the smallest delay of the last 500 ms: a queue that empties from time to time does no harm.
 *
 *   every sample late for 500 ms ──► with each further late sample, another sixteenth of the new calls is shed, up to a quarter
 *   a sample that is not late ──► the share is halved
 *
 * Calls are picked at random. If every fourth call were shed instead, one of four callers who take turns would lose all its calls.
 */
export class LoadShedder {
  readonly #now: () => number;
  readonly #random: () => number;
  #timer: NodeJS.Timeout | null = null;
  #isStarted = false;
  #samplesWithoutRequest = 0;
  readonly #delays: LongestDelay;
  #sampledAt = 0;
  #lateSince: number | null = null;
  /** Share of new calls to shed, 0 to MAX_SHARE; nearly always 0. */
  share = 0;
  /** How many calls were shed since the process started. */
  shed = 0;

  constructor({ now = () => performance.now(), random = Math.random }: LoadShedderOptions = {}) {
    this.#now = now;
    this.#random = random;
    this.#sampledAt = now();
    this.#delays = new LongestDelay(now());
  }

  start(): void {
    this.#isStarted = true;
    this.#wake();
  }

  stop(): void {
    this.#isStarted = false;
    this.#rest();
    this.share = 0;
  }

  #wake(): void {
    this.#sampledAt = this.#now();
    this.#timer ??= setInterval(() => this.sample(), SAMPLE_MS);
    this.#timer.unref();
  }

  #rest(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  /** Largest delay of a sample in the last one to two minutes, in milliseconds. */
  get longestDelayMs(): number {
    return this.#delays.longestUntil(this.#now());
  }

  /** Called for a request that is not a call, and so is never shed. It can delay calls too, so the measuring goes on. */
  requested(): void {
    this.#samplesWithoutRequest = 0;
    if (this.#timer === null && this.#isStarted) this.#wake();
  }

  /** Whether to refuse this new call. If so, `shed` counts the call. */
  sheds(): boolean {
    this.requested();
    if (this.share === 0 || this.#random() >= this.share) return false;
    this.shed++;
    return true;
  }

  /** Called by the timer, which was due SAMPLE_MS after the previous sample. */
  sample(): void {
    const now = this.#now();
    const elapsedMs = now - this.#sampledAt;
    this.#sampledAt = now;
    this.#delays.add(elapsedMs - SAMPLE_MS, now);
    if (++this.#samplesWithoutRequest > REST_AFTER_SAMPLES && this.share === 0) this.#rest();
    if (elapsedMs - SAMPLE_MS <= MAX_DELAY_MS) {
      this.#lateSince = null;
      this.share = this.share / 2 < LEAST_SHARE ? 0 : this.share / 2;
      return;
    }
    this.#lateSince ??= now;
    if (now - this.#lateSince >= STANDING_MS) this.share = Math.min(MAX_SHARE, this.share + SHARE_STEP);
  }
}

/** Length of a window: `LongestDelay` looks at the current one and the one before it. */
const WINDOW_MS = 60_000;

/**
 * The largest delay in the current window and the one before it. Reading does not reset it, so all scrapers see the same value.
 */
class LongestDelay {
  #beganAt: number;
  #present = 0;
  #before = 0;

  constructor(nowMs: number) {
    this.#beganAt = nowMs;
  }

  add(delayMs: number, nowMs: number): void {
    this.#turn(nowMs);
    this.#present = Math.max(this.#present, delayMs);
  }

  longestUntil(nowMs: number): number {
    this.#turn(nowMs);
    return Math.max(this.#present, this.#before);
  }

  #turn(nowMs: number): void {
    const elapsedMs = nowMs - this.#beganAt;
    if (elapsedMs < WINDOW_MS) return;
    this.#before = elapsedMs < 2 * WINDOW_MS ? this.#present : 0;
    this.#present = 0;
    this.#beganAt = nowMs;
  }
}
