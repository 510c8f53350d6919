/**
 * Counts the bytes that all requests to `/mcp` together may keep in memory. Calls through the proxy stream, and keep next to
 * nothing; a tool's arguments and its result are whole in memory.
 */
export class ByteBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** @returns false, and reserves nothing, if the bytes are not left */
  reserve(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  release(bytes: number): void {
    this.#left += bytes;
  }
}
