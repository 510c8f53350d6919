/** The clock of a breaker, in ticks. `Breakers` advances it; a test can advance its own. */
type Ticks = { readonly now: number };

/** Length of one tick of a breaker's clock. */
export const TICK_MS = 500;
/** Calls are counted in half windows of 10 s. A breaker judges by the current half and the one before it: the last 10 to 20 s. */
const HALF_WINDOW_TICKS = 20;
/** A breaker with fewer calls than this in its window does not open: one caller's bad luck is not a dead service. */
const MIN_CALLS = 10;
/** A breaker opens when this share of the calls in its window has failed. */
const OPEN_AT_SHARE = 0.5;
/** Time from opening to the first probe: 1 s. Each further pause between probes is twice as long, up to MAX_PAUSE_TICKS. */
const FIRST_PAUSE_TICKS = 2;
/** Longest pause between two probes: 30 s. */
const MAX_PAUSE_TICKS = 60;

/**
 * Refuses calls to a service that does not answer. Each such call would occupy a connection, the caller and the caller's money
 * until its timeout, only to be refunded.
 *
 *   closed ──10 calls, half of them failed──► open ──pause over: one call, the probe, is let through──► open, twice the pause
 *      ▲                                                                                                │
 *      └──────────────────────────────────────────── the probe is answered ────────────────────────────┘
 *
 * The breaker does not wait for the end of a probe. If it never hears of that probe again (the caller left, or the service is
 * still silent), it lets another call through after the next pause. So there is one probe per pause, and a lost callback cannot
 * keep the breaker open.
 *
 * Calls that are still under way when the breaker closes were sent while the service was silent. Their failures say nothing new,
 * and keep arriving for as long as the longest timeout. So each call remembers the `era` in which it was let through, and the
 * breaker ignores failures from earlier eras.
 *
 * A call has failed when no response head came: the service was not reached, reset the connection, timed out, or sent something
 * malformed. Any valid head counts as an answer, a 5xx included. A 5xx keeps nobody waiting, is refunded, and may say when to come
 * back. It must not open the breaker: otherwise a buyer who knows an input that makes a service answer 5xx could block that service
 * for everybody else.
 *
 * While the breaker is closed, it costs a call four comparisons, a division and an addition.
 */
export class Breaker {
  readonly #ticks: Ticks;
  isClosed = true;
  /** How often the breaker has closed. */
  era = 0;
  #half = 0;
  #calls = 0;
  #failures = 0;
  #callsBefore = 0;
  #failuresBefore = 0;
  #pauseTicks = FIRST_PAUSE_TICKS;
  #probeAt = 0;
  /** The last time that the breaker opened, refused a call or chose a probe. */
  #askedAt = 0;

  constructor(ticks: Ticks) {
    this.#ticks = ticks;
  }

  /** Called for each new call while the breaker is open. @returns true if this call is the probe, false if it must be refused */
  takeProbe(): boolean {
    const { now } = this.#ticks;
    this.#askedAt = now;
    if (now < this.#probeAt) return false;
    this.#pauseTicks = Math.min(this.#pauseTicks * 2, MAX_PAUSE_TICKS);
    this.#probeAt = now + this.#pauseTicks;
    return true;
  }

  /**
   * The call chosen as the probe was not sent after all (its account has no money, for instance), so the next call is the probe.
   */
  returnProbe(): void {
    if (this.isClosed) return;
    this.#pauseTicks = Math.max(this.#pauseTicks / 2, FIRST_PAUSE_TICKS);
    this.#probeAt = this.#ticks.now;
  }

  /** Seconds until an open breaker lets the next probe through; at least 1. */
  get retryAfterSeconds(): number {
    return Math.max(1, Math.ceil(((this.#probeAt - this.#ticks.now) * TICK_MS) / 1000));
  }

  /** A response head came. Only a probe's head closes an open breaker: all other calls were sent before it opened. */
  answered(isProbe: boolean): void {
    this.#turn();
    this.#calls++;
    if (isProbe && !this.isClosed) this.#close();
  }

  /** No response head came. @param era the `era` in which the call was let through. @returns whether this opened the breaker */
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

  /**
   * Whether the breaker is open and somebody called the service within the last 30 s. A dead service that nobody calls needs no
   * attention.
   */
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
