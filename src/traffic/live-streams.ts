import { performance } from 'node:perf_hooks';
import { Sleeper } from '../platform/timing.ts';
import { REPORT_EVERY_MS } from './reporter.ts';

/** Maximum streams open in one gateway; beyond it a stream is refused. Each costs a few kilobytes a second. */
const MAX_STREAMS = 32;
/** A stream ends after this time, and its reader asks again: so a revoked key sees nothing after that. */
const MAX_STREAM_MS = 300_000;

/**
 * Sends one server-sent event a second to each of several readers.
 *
 * Tested by test/traffic/traffic.test.ts.
 */
export class LiveStreams {
  readonly #sleepers = new Set<Sleeper>();
  readonly #maxStreams: number;
  readonly #maxMs: number;
  #isEnded = false;

  constructor({ maxStreams = MAX_STREAMS, maxMs = MAX_STREAM_MS } = {}) {
    this.#maxStreams = maxStreams;
    this.#maxMs = maxMs;
  }

  get isFull(): boolean {
    return this.#isEnded || this.#sleepers.size >= this.#maxStreams;
  }

  /** Ends all streams and opens no more, because the gateway drains. */
  end(): void {
    this.#isEnded = true;
    for (const sleeper of this.#sleepers) sleeper.wake();
  }

  /** The pieces of one stream. The stream counts as open from its first piece. @param event the text of one event, never rejects */
  async *pieces(event: () => Promise<string>): AsyncGenerator<Uint8Array> {
    const sleeper = new Sleeper();
    this.#sleepers.add(sleeper);
    const endsAt = performance.now() + this.#maxMs;
    try {
      for (let due = performance.now(); !this.#isEnded && due < endsAt; ) {
        yield Buffer.from(await event());
        due = Math.max(due + REPORT_EVERY_MS, performance.now());
        if (!this.#isEnded) await sleeper.sleep(due - performance.now());
      }
    } finally {
      this.#sleepers.delete(sleeper);
    }
  }
}
