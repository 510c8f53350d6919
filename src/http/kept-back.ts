/**
 * How many bytes are kept back.
 *
 * In chunks the addon takes a byte even when it says no, so each probes only once. A full socket answers no and must free a third
 * of its buffer before it is asked again; at most 32 KB wait in the addon, so three probes suffice. The fourth byte is in reserve.
 *
 * Of a response of known length the addon leaves us a byte that it cannot send: the same one probes again.
 */
const KEPT_BYTES = { chunks: 4, length: 1 } as const;
const NOTHING = new Uint8Array(0);

/**
 * The last bytes of a response that will close its connection, until the next turn. The addon does not say what it still holds
 * when a response ends, and forgets it when the connection is closed; but a write in a cork of its own reports whether all before
 * it is with the system.
 */
export class KeptBack {
  readonly #kind: keyof typeof KEPT_BYTES;
  readonly #onTurn: () => void;
  #bytes: Uint8Array = NOTHING;
  #scheduled = false;

  /** @param onTurn  time to release them */
  constructor(kind: keyof typeof KEPT_BYTES, onTurn: () => void) {
    this.#kind = kind;
    this.#onTurn = onTurn;
  }

  get isEmpty(): boolean {
    return this.#bytes.length === 0;
  }

  /** Keeps the end of what is to be sent now. @returns the rest of it, which may be nothing */
  exchange(chunk: Uint8Array): Uint8Array {
    const all = this.isEmpty ? chunk : Buffer.concat([this.#bytes, chunk]);
    const from = Math.max(0, all.length - KEPT_BYTES[this.#kind]);
    // Not slice(): on a Buffer that is a view.
    this.#bytes = new Uint8Array(all.subarray(from));
    this.schedule();
    return all.subarray(0, from);
  }

  schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#onTurn();
    });
  }

  /**
   * All of them, or at most one when the system has not taken everything before.
   *
   * @param write  the addon's. Returns whether it has
   * @returns whether it has
   */
  release(write: (bytes: Uint8Array) => boolean): boolean {
    const bytes = this.#bytes;
    const ok = write(bytes.subarray(0, 1));
    if (ok && bytes.length > 1) write(bytes.subarray(1));
    if (ok) this.#bytes = NOTHING;
    else if (this.#kind === 'chunks') this.#bytes = bytes.subarray(1);
    return ok;
  }

  /** For a response that is one byte: nothing was sent that it could wait for. */
  take(): Uint8Array {
    const bytes = this.#bytes;
    this.#bytes = NOTHING;
    return bytes;
  }
}
