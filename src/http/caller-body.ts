import type { CallerEvents } from '../proxy/caller-io.ts';
import type { HttpResponse } from './uws.ts';

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

  #onData(chunk: Uint8Array, last: boolean): void {
    if (last) this.isDone = true;
    if (!this.#owner.onBodyBytes()) return;
    if (this.#events !== null) {
      this.#events.onCallerBody(chunk, last);
      return;
    }
    this.#early.push(chunk.slice());
    if (!last) this.#owner.pauseBody();
  }
}
