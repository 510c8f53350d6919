import type { UpstreamCall } from '../../upstream/index.ts';

/** A caller that takes nothing for this long counts as gone: many services abandon a response after half a minute. */
const LONG_MS = 30_000;
/** How long after this pause a service may still abandon the response because of it: it notices the pause when it writes again. */
const RECENT_MS = 60_000;

/** Stops the flow of a response while its caller does not read. */
export type Flow = Pick<UpstreamCall, 'pause' | 'resume' | 'isPaused'>;

/**
 * The flow of a response that is priced by use. It remembers whether the caller's slowness has delayed the service for long: if the
 * service then cuts the response, the caller has caused it.
 *
 * Tested by test/proxy/by-use/use.test.ts and test/integration/priced-by-use.test.ts.
 */
export class PausedService implements Flow {
  /** Milliseconds that only grow. Tests of whole calls, which cannot wait for half a minute, advance it. */
  static clock = (): number => performance.now();

  readonly #upstream: Flow;
  readonly #clock: () => number;
  #pausedAtMs = 0;
  /** When the last long pause ended. */
  #longPauseEndMs = Number.NEGATIVE_INFINITY;

  constructor(upstream: Flow, clock: () => number = PausedService.clock) {
    this.#upstream = upstream;
    this.#clock = clock;
  }

  get isPaused(): boolean {
    return this.#upstream.isPaused;
  }

  pause(): void {
    if (!this.isPaused) this.#pausedAtMs = this.#clock();
    this.#upstream.pause();
  }

  resume(): void {
    if (this.#isLong()) this.#longPauseEndMs = this.#clock();
    this.#upstream.resume();
  }

  /** Whether, within the last minute, the service was paused for 30 s without a break. */
  get wasLong(): boolean {
    return this.#isLong() || this.#clock() - this.#longPauseEndMs <= RECENT_MS;
  }

  #isLong(): boolean {
    return this.isPaused && this.#clock() - this.#pausedAtMs >= LONG_MS;
  }
}
