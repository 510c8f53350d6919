import type { CallerEvents } from '../gate/caller-io.ts';
import type { HttpResponse } from './uws.ts';

/**
 * Once the response is sent, the rest of the request is read and dropped before the connection is closed: closing a socket with
 * bytes unread resets the connection, and the system forgets what it has not sent yet of the response (RFC 9112 §9.6). Over when
 * nothing came for a second, because a caller may well stop sending when it reads an early answer, and after five seconds in all.
 */
const DROP_IDLE_MS = 1_000;
const DROP_MS = 5_000;

/** The stream whose request the body belongs to. */
export interface BodyOwner {
  /** Bytes of the body came. @returns whether anybody wants them still */
  onBodyBytes(): boolean;
  /** Pauses the body, unless the response has begun. */
  pauseBody(): void;
}

/**
 * The body of a request on its way from the addon to whoever attaches.
 *
 * Before that it is kept: the addon hands over what came with the head whether anybody is ready or not. At most one read, because
 * the rest is left in the socket.
 */
export class CallerBody {
  isDone = false;
  isPaused = false;
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
    this.#response.pause();
  }

  resume(): void {
    if (!this.isPaused) return;
    this.isPaused = false;
    this.#response.resume();
  }

  /**
   * Reads the rest and drops it. Called again, it changes nothing.
   *
   * @param maxBytes  of it
   * @param done  in a turn of its own: there is no more, or it is not waited for any longer
   */
  drop(maxBytes: number, done: () => void): void {
    this.#dropping ??= new Dropping(maxBytes, done);
  }

  #onData(chunk: Uint8Array, last: boolean): void {
    if (last) this.isDone = true;
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
