import type { HttpResponse } from './uws.ts';
import type { Head } from './uws-response.ts';

/**
 * How many bytes of a body of unknown length are kept back. Each of them can probe the socket once, because the addon's write()
 * takes a byte even if it reports that the socket is full. A full socket is probed again only after a third of its buffer is
 * free, and at most 32 KB are waiting in the addon, so three probes suffice. The fourth byte is a reserve.
 */
const KEPT_IN_CHUNKS = 4;
/**
 * How many bytes of a body of known length are kept back. One is enough: when the socket is full, the addon's tryEnd() does not
 * take the byte, so it can be tried again.
 */
const KEPT_WITH_LENGTH = 1;
const NOTHING = new Uint8Array(0);

/**
 * The last bytes of a response that will close its connection. They are kept back until the operating system has taken all bytes
 * before them.
 *
 * When a response ends, the addon does not say whether it still buffers some of it. If the connection is closed then, the addon
 * drops those bytes. But a write in a cork and an event-loop turn of its own reports whether the system has taken everything
 * before it. The first byte kept back is such a write: it *probes* the socket.
 *
 *   exchange(piece) … exchange(piece) ──next turn──► release(): the first byte probes
 *                                          ▲            ├── socket has room ──► the others follow, nothing is kept
 *                                          └────────────┴── socket is full: again when it is writable
 *
 * The bytes kept back cannot be checked in this way. They are lost if the bytes before them have filled the system's buffer
 * exactly.
 *
 * Tested by test/http/close-connection.test.ts.
 */
export class KeptBack {
  readonly #contentLength: number;
  readonly #onTurn: () => void;
  #bytes: Uint8Array = NOTHING;
  #scheduled = false;

  /**
   * @param contentLength  of the response in bytes; -1 if unknown
   * @param onTurn  called in the event-loop turn after exchange() or schedule(): it is time to release the bytes
   */
  constructor(contentLength: number, onTurn: () => void) {
    this.#contentLength = contentLength;
    this.#onTurn = onTurn;
  }

  get isEmpty(): boolean {
    return this.#bytes.length === 0;
  }

  /**
   * Takes the next piece of the body. Keeps back the last bytes of everything so far, and returns the others to be sent now. There
   * may be none.
   */
  exchange(chunk: Uint8Array): Uint8Array {
    const all = this.isEmpty ? chunk : Buffer.concat([this.#bytes, chunk]);
    const from = Math.max(0, all.length - (this.#contentLength < 0 ? KEPT_IN_CHUNKS : KEPT_WITH_LENGTH));
    // A copy, because the next read overwrites the chunk. Not slice(): that of a Buffer does not copy.
    this.#bytes = new Uint8Array(all.subarray(from));
    this.schedule();
    return all.subarray(0, from);
  }

  /** Makes sure that `onTurn` is called in the next event-loop turn. */
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

  /**
   * Returns the only byte of a one-byte response, and keeps nothing. No body byte went before it, so there is nothing to probe
   * for.
   */
  take(): Uint8Array {
    const bytes = this.#bytes;
    this.#bytes = NOTHING;
    return bytes;
  }
}
