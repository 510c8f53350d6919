import type { CallerEvents } from '../gate/caller-io.ts';
import type { HttpResponse } from './uws.ts';

/**
 * Maximum time without a byte while drop() reads the rest of a request; then the connection is closed. Many callers stop sending
 * when they notice an early response.
 */
const DROP_IDLE_MS = 1_000;
/**
 * Maximum total time for which drop() reads. A caller that is still sending then is cut, and may lose the part of the response that
 * it has not read.
 */
const DROP_MS = 5_000;

/** What the body of a request needs from the stream that answers the request. */
export interface BodyOwner {
  /** Bytes of the body have arrived. @returns whether they are still wanted */
  onBodyBytes(): boolean;
  /** Pauses the body, unless the response has begun. */
  pauseBody(): void;
}

/**
 * The body of a request, on its way from the addon to the exchange or page that reads it.
 *
 * The addon delivers the bytes that came with the head at once, even if nobody has called attach() yet. They are copied and
 * buffered until then. That is at most one read, because the body is paused at once and the rest stays in the socket.
 *
 * Tested by test/http/caller-stream.test.ts and early-answers.test.ts.
 */
export class CallerBody {
  isDone = false;
  isPaused = false;
  /** Whether the body was paused at any time since the server's last tick, which resets this. */
  wasPaused = false;
  /** Bytes that have arrived. */
  bytes = 0;
  readonly #response: HttpResponse;
  readonly #owner: BodyOwner;
  #events: CallerEvents | null = null;
  #early: Uint8Array[] = [];
  #dropping: Dropping | null = null;

  constructor(response: HttpResponse, owner: BodyOwner) {
    this.#response = response;
    this.#owner = owner;
    response.onData((chunk, last) => this.#onData(new Uint8Array(chunk), last));
  }

  attach(events: CallerEvents): void {
    this.#events = events;
    const early = this.#early;
    this.#early = [];
    early.forEach((chunk, i) => {
      events.onCallerBody(chunk, this.isDone && i === early.length - 1);
    });
  }

  pause(): void {
    if (this.isPaused) return;
    this.isPaused = true;
    this.wasPaused = true;
    this.#response.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#response.resume();
  }

  /**
   * Reads the rest of the request and drops it, so that the connection can be closed. Closing a socket with unread bytes resets the
   * connection, and the operating system then discards the unsent part of the response (RFC 9112 §9.6). A second call changes
   * nothing.
   *
   * @param maxBytes  maximum bytes to read; beyond it `done` is called although the caller is still sending
   * @param done  called once, in an event-loop turn of its own, when the request is whole or a bound is reached
   */
  drop(maxBytes: number, done: () => void): void {
    this.#dropping ??= new Dropping(maxBytes, done);
  }

  #onData(chunk: Uint8Array, last: boolean): void {
    if (last) this.isDone = true;
    this.bytes += chunk.length;
    this.#dropping?.onBytes(chunk.length, last);
    if (!this.#owner.onBodyBytes()) return;
    if (this.#events !== null) {
      this.#events.onCallerBody(chunk, last);
      return;
    }
    this.#early.push(chunk.slice());
    if (!last) this.#owner.pauseBody();
  }
}

/** Counts the bytes and the time while the rest of a request is dropped. */
class Dropping {
  readonly #deadline = performance.now() + DROP_MS;
  readonly #idle: NodeJS.Timeout;
  readonly #done: () => void;
  #bytesLeft: number;
  #isOver = false;

  constructor(maxBytes: number, done: () => void) {
    this.#bytesLeft = maxBytes;
    this.#done = done;
    this.#idle = setTimeout(() => this.#end(), DROP_IDLE_MS);
  }

  onBytes(bytes: number, last: boolean): void {
    this.#bytesLeft -= bytes;
    if (last || this.#bytesLeft < 0 || performance.now() > this.#deadline) this.#end();
    else this.#idle.refresh();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#idle);
    setImmediate(this.#done);
  }
}
