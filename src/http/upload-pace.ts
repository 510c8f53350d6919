/** The pace is judged over this many ticks of the server: 10 s. */
const WINDOW_TICKS = 5;
/**
 * Minimum bytes of a window: 1 KiB/s, which the slowest mobile networks exceed by ten. A slower body occupies a connection of its
 * service, and the hold of its call, for nothing.
 */
const MIN_BYTES = 10_240;

/**
 * Finds callers who send their request body too slowly. It counts only ticks in which the gateway was ready to read: the caller of a
 * service that reads slowly has to wait for the service.
 *
 * Tested by test/http/slow-bodies.test.ts and test/integration/fairness.test.ts.
 */
export class UploadPace {
  /** The first window is not judged. */
  #isFirst = true;
  #ticks = 0;
  #bytesBefore = 0;

  /**
   * @param bytes how many bytes of the body have arrived
   * @param wasPaused  whether the body was paused at any time since the last tick
   * @returns whether the body is too slow
   */
  tick(bytes: number, wasPaused: boolean): boolean {
    if (wasPaused || ++this.#ticks < WINDOW_TICKS) return false;
    const isSlow = !this.#isFirst && bytes - this.#bytesBefore < MIN_BYTES;
    this.#isFirst = false;
    this.#ticks = 0;
    this.#bytesBefore = bytes;
    return isSlow;
  }
}
