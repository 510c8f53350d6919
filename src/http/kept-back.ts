/**
 * How many bytes are kept back. Each answers one question: did the system take everything before it? A full socket answers no,
 * then frees a third of its buffer before the next question, and at most 32 KB wait in the addon: three are enough.
 */
const KEPT_BYTES = 4;
const NOTHING = new Uint8Array(0);

/**
 * The last bytes of a stream that will close its connection, until the next turn. The addon does not say what it still holds
 * when a response ends, and forgets it when the connection is closed; but a write() reports whether all before it has left.
 */
export class KeptBack {
  readonly #onTurn: () => void;
  #bytes: Uint8Array = NOTHING;
  #scheduled = false;

  /** @param onTurn  time to release them */
  constructor(onTurn: () => void) {
    this.#onTurn = onTurn;
  }

  get isEmpty(): boolean {
    return this.#bytes.length === 0;
  }

  /** Keeps the end of what is to be sent now. @returns the rest of it, which may be nothing */
  exchange(chunk: Uint8Array): Uint8Array {
    const all = this.isEmpty ? chunk : Buffer.concat([this.#bytes, chunk]);
    const from = Math.max(0, all.length - KEPT_BYTES);
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
   * All of them, or only one when the system has not taken everything before.
   *
   * @param write  the addon's
   * @returns whether it has
   */
  release(write: (bytes: Uint8Array) => boolean): boolean {
    const bytes = this.#bytes;
    const ok = write(bytes.subarray(0, 1));
    if (ok && bytes.length > 1) write(bytes.subarray(1));
    this.#bytes = ok ? NOTHING : bytes.subarray(1);
    return ok;
  }
}
