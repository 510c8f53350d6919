/** Time of a breaker: `Breakers` counts it, tests may too. */
export type Ticks = { readonly now: number };

export const TICK_MS = 500;
/** Calls are counted in two halves of this length, the present one and the one before: the last 10 to 20 s. */
const HALF_WINDOW_TICKS = 20;
/** Fewer calls than this prove nothing: one caller's bad luck is not a dead service. */
const MIN_CALLS = 10;
/** Of the calls in the window. */
const OPEN_AT_SHARE = 0.5;
const FIRST_PAUSE_TICKS = 2;
const MAX_PAUSE_TICKS = 60;

/**
 * Keeps calls from a service that does not answer: each would hold a connection, a caller and the caller's money until its
 * timeout, only to be refunded.
 *
 *   closed ──10 calls, half of them failed──► open ──pause over: one call is let through, the probe──► open, twice the pause
 *      ▲                                                                                                │
 *      └──────────────────────────────────────────── the probe is answered ────────────────────────────┘
 *
 * A probe needs no end: should nothing be heard of it (its caller left, it is still waiting), the next one goes after the
 * next pause. So there is one probe a pause, and no state that a lost callback could leave behind.
 *
 * Calls that are under way when it closes were sent while the service was silent: their failures say nothing new, and come
 * for as long as the longest timeout. Each call keeps the `era` it was let through in.
 *
 * A call has failed when no response head came: not reached, reset, malformed, timed out. Any head is an answer, a 5xx too: it
 * costs no waiting, it is refunded, it may say when to come back, and which requests get one is up to the caller: a buyer
 * who knows an input that breaks a service could otherwise close it for all others.
 *
 * A call costs a closed breaker two comparisons and an addition.
 */
export class Breaker {
  readonly #ticks: Ticks;
  isClosed = true;
  /** Times it has closed. */
  era = 0;
  #half = 0;
  #calls = 0;
  #failures = 0;
  #callsBefore = 0;
  #failuresBefore = 0;
  #pauseTicks = FIRST_PAUSE_TICKS;
  #probeAt = 0;
  /** When a call was last refused or let through as a probe. */
  #askedAt = 0;

  constructor(ticks: Ticks) {
    this.#ticks = ticks;
  }

  /** Of an open breaker: whether this call is the probe. If not, it has to be refused. */
  takeProbe(): boolean {
    const { now } = this.#ticks;
    this.#askedAt = now;
    if (now < this.#probeAt) return false;
    this.#pauseTicks = Math.min(this.#pauseTicks * 2, MAX_PAUSE_TICKS);
    this.#probeAt = now + this.#pauseTicks;
    return true;
  }

  /** The probe was not sent after all (no money for it, for instance): the next call is one. */
  returnProbe(): void {
    if (this.isClosed) return;
    this.#pauseTicks = Math.max(this.#pauseTicks / 2, FIRST_PAUSE_TICKS);
    this.#probeAt = this.#ticks.now;
  }

  /** Of an open breaker: until the next probe. At least 1. */
  get retryAfterSeconds(): number {
    return Math.max(1, Math.ceil(((this.#probeAt - this.#ticks.now) * TICK_MS) / 1000));
  }

  /** A response head came. Only a probe's closes: others were sent before the breaker opened. */
  answered(isProbe: boolean): void {
    this.#turn();
    this.#calls++;
    if (isProbe && !this.isClosed) this.#close();
  }

  /** No response head came. @param era when the call was let through. @returns whether this opened the breaker */
  failed(era: number): boolean {
    if (era !== this.era) return false;
    this.#turn();
    this.#calls++;
    this.#failures++;
    const calls = this.#calls + this.#callsBefore;
    const failures = this.#failures + this.#failuresBefore;
    if (!this.isClosed || calls < MIN_CALLS || failures < calls * OPEN_AT_SHARE) return false;
    this.isClosed = false;
    this.#pauseTicks = FIRST_PAUSE_TICKS;
    this.#askedAt = this.#ticks.now;
    this.#probeAt = this.#ticks.now + this.#pauseTicks;
    return true;
  }

  /** Open, and somebody wanted through within the longest pause: a service that nobody calls is nobody's trouble. */
  get isInTheWay(): boolean {
    return !this.isClosed && this.#ticks.now - this.#askedAt <= MAX_PAUSE_TICKS;
  }

  #close(): void {
    this.isClosed = true;
    this.era++;
    this.#calls = 0;
    this.#failures = 0;
    this.#callsBefore = 0;
    this.#failuresBefore = 0;
  }

  #turn(): void {
    const half = Math.floor(this.#ticks.now / HALF_WINDOW_TICKS);
    if (half === this.#half) return;
    const isNext = half === this.#half + 1;
    this.#callsBefore = isNext ? this.#calls : 0;
    this.#failuresBefore = isNext ? this.#failures : 0;
    this.#calls = 0;
    this.#failures = 0;
    this.#half = half;
  }
}
