import type { HttpResponse } from './uws.ts';
import type { Head } from './uws-response.ts';

/**
 * How many bytes of a body of unknown length are kept back. Each of them can probe the socket once, because the addon takes a byte
 * even if it reports that the socket is full. Such a socket has to free a third of its buffer before it is probed again, and at
 * most 32 KB are waiting in the addon, so three probes suffice. The fourth byte is a reserve.
 */
const KEPT_IN_CHUNKS = 4;
/**
 * How many bytes of a body of known length are kept back. One is enough: when the socket is full, `tryEnd` leaves the byte
 * with us (`write`, used above for chunks, takes it), so the same byte can probe again.
 */
const KEPT_WITH_LENGTH = 1;
const NOTHING = new Uint8Array(0);

/**
 * The last bytes of a response that will close its connection. They are kept back until the operating system has taken all bytes
 * before them.
 *
 * The addon does not say what it still buffers when a response ends, and drops it when the connection is closed. But a write in a
 * cork and an event-loop turn of its own reports whether the system has taken everything before it. The first byte kept back is
 * that write: it *probes* the socket.
 *
 *   exchange(piece) … exchange(piece) ──next turn──► release(): the first byte probes
 *                                          ▲            ├── socket has room ──► the others follow, nothing is kept
 *                                          └────────────┴── socket is full: again when it is writable
 *
 * The bytes kept back cannot be checked in this way. If the bytes before them have filled the system's buffer exactly, they are
 * lost.
 *
 * Tested by test/http/closing.test.ts.
 */
export class KeptBack {
  readonly #contentLength: number;
  readonly #onTurn: () => void;
  #bytes: Uint8Array = NOTHING;
  #scheduled = false;

  /**
   * @param contentLength  of the response in bytes; -1 if unknown
   * @param onTurn  called in the event-loop turn after an exchange(): it is time to release the bytes
   */
  constructor(contentLength: number, onTurn: () => void) {
    this.#contentLength = contentLength;
    this.#onTurn = onTurn;
  }

  get isEmpty(): boolean {
    return this.#bytes.length === 0;
  }

  /** Takes the next piece of the body, and keeps back the last bytes so far. @returns the bytes to be sent now, perhaps none */
  exchange(chunk: Uint8Array): Uint8Array {
    const all = this.isEmpty ? chunk : Buffer.concat([this.#bytes, chunk]);
    const from = Math.max(0, all.length - (this.#contentLength < 0 ? KEPT_IN_CHUNKS : KEPT_WITH_LENGTH));
    // A copy, because the chunk is the upstream's read buffer. Not slice(): on a Buffer that is a view.
    this.#bytes = new Uint8Array(all.subarray(from));
    this.schedule();
    return all.subarray(0, from);
  }

  /** Has `onTurn` called in the next turn. */
  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#onTurn();
    });
  }

  /**
   * Probes the socket with the first byte, and sends the others if there is room.
   *
   * @param head  null if it has been sent
   * @returns whether the system has taken everything before these bytes. If not, call this again when the socket is writable
   */
  release(response: HttpResponse, head: Head | null): boolean {
    const bytes = this.#bytes;
    const isChunked = this.#contentLength < 0;
    let ok = false;
    response.cork(() => {
      if (head !== null) response.writeStatus(head);
      if (isChunked) {
        ok = response.write(bytes.subarray(0, 1));
        if (ok && bytes.length > 1) response.write(bytes.subarray(1));
      } else {
        // One byte more than there are, so that the addon does not take the response for complete.
        [ok] = response.tryEnd(bytes, this.#contentLength + 1);
      }
    });
    if (ok) this.#bytes = NOTHING;
    else if (isChunked) this.#bytes = bytes.subarray(1);
    return ok;
  }

  /** Gives up the only byte of a response of one byte. No byte went before it, so there is nothing to probe for. */
  take(): Uint8Array {
    const bytes = this.#bytes;
    this.#bytes = NOTHING;
    return bytes;
  }
}
