import { performance } from 'node:perf_hooks';
import type { CallTimings } from './exchange-options.ts';
import { serverTimingLines } from './server-timing.ts';

/**
 * Where the time of one call goes: `admission`, from the request head until Redis has decided, and `service`, from there to the
 * service's response head or failure. Counts both, and reports them in the response.
 */
export class CallClock {
  readonly #startedAt = performance.now();
  readonly #timings: CallTimings;
  /** When the present part began. Milliseconds. */
  #partStartedAt = this.#startedAt;
  #admissionUs = 0;
  #serviceUs: number | null = null;

  constructor(timings: CallTimings) {
    this.#timings = timings;
  }

  /** The time so far was not spent on Redis, but on waiting for the caller's message. */
  beginAdmission(): void {
    this.#partStartedAt = performance.now();
  }

  endAdmission(): void {
    this.#admissionUs = this.#endPart();
    this.#timings.admission.count(this.#admissionUs);
  }

  endService(): void {
    this.#serviceUs = this.#endPart();
    this.#timings.service.count(this.#serviceUs);
  }

  /** @returns the duration of the whole call, in microseconds */
  end(): number {
    const totalUs = microseconds(performance.now() - this.#startedAt);
    this.#timings.total.count(totalUs);
    return totalUs;
  }

  headerLines(): string {
    return serverTimingLines(this.#admissionUs, this.#serviceUs);
  }

  #endPart(): number {
    const now = performance.now();
    const us = microseconds(now - this.#partStartedAt);
    this.#partStartedAt = now;
    return us;
  }
}

const microseconds = (ms: number): number => Math.round(ms * 1000);
