/** How often the lateness of the event loop is looked at: one timer for the process, nothing per call. */
const SAMPLE_MS = 50;
/** A turn this long is too long: a call takes about four of them, and Redis's replies must be read within their timeout. */
const MAX_DELAY_MS = 100;
/** Late in every sample for this long. A burst of new connections or a pause of the garbage collector is over sooner. */
const STANDING_MS = 500;
const SHARE_STEP = 0.0625;
/**
 * Most of the new calls that are shed: one for three that are taken. Saying no costs about a third of a call's CPU, so a process
 * that may shed without a bound does little else once its callers ask again at once. This way nine tenths of it are left for
 * calls, on a fast machine and on a slow one; what is not shed stands in line, and the line is as long as there are connections.
 * Callers that heed Retry-After leave the line for a second each.
 */
const MAX_SHARE = 0.25;
const LEAST_SHARE = 0.02;
/** Without a request for so many samples (a second), it rests until the next one: an idle process has nothing to be late for. */
const REST_AFTER_SAMPLES = 20;

export type LoadShedderOptions = {
  /** Milliseconds of a clock that never goes back. */
  readonly now?: () => number;
  /** 0 to 1. */
  readonly random?: () => number;
};

/**
 * Decides which calls a busy process does not take at all.
 *
 * What tells is how late a timer fires: that is how long everything waits that is ready. As in CoDel it is the delay that
 * *stands* which counts, the least one of the last 500 ms: a queue that empties in between is no harm.
 *
 *   late in every sample for 500 ms ──► each further late sample: a sixteenth more of the new calls is shed, up to a quarter
 *   a sample that is not late ──► half as many
 *
 * Chance picks them: of callers that call in step, always shedding every other call would shed always the same.
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
  /** Of the new calls, 0 to MAX_SHARE; 0 nearly always. */
  share = 0;
  /** Calls shed since the start. */
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

  /** Largest delay of a sample in the last minute or two, in milliseconds. */
  get longestDelayMs(): number {
    return this.#delays.longestUntil(this.#now());
  }

  /** A request came that cannot be shed: it may delay others all the same. */
  requested(): void {
    this.#samplesWithoutRequest = 0;
    if (this.#timer === null && this.#isStarted) this.#wake();
  }

  /** Whether this new call is to be refused; if so, it counts. */
  sheds(): boolean {
    this.requested();
    if (this.share === 0 || this.#random() >= this.share) return false;
    this.shed++;
    return true;
  }

  /** What the timer does: it was due SAMPLE_MS after the sample before. */
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

const WINDOW_MS = 60_000;

/** The largest delay of the window under way and the one before it: whoever reads it takes nothing from other readers. */
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
