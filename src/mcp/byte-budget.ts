/**
 * Counts the bytes that all requests to `/mcp` together may keep in memory. Calls through the proxy stream, and keep next to
 * nothing; a tool's arguments and its result are whole in memory.
 */
export class ByteBudget {
  #left: number;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** @returns false, and reserves nothing, if too few bytes are left */
  reserve(bytes: number): boolean {
    if (bytes > this.#left) return false;
    this.#left -= bytes;
    return true;
  }

  release(bytes: number): void {
    this.#left += bytes;
  }
}

/**
 * Parsed, a text of `{},{},…` takes 22 times its length. Measured for each mark: 34 bytes for empty objects, 56 for nested arrays,
 * 65 for objects that each have a member of another name, 8 for numbers.
 */
const BYTES_PER_MARK = 65;
/** `[`, `{`, `,` and `:`, by character code. */
const MARKS = new Uint8Array(256);
for (const mark of '[{,:') MARKS[mark.charCodeAt(0)] = 1;

/** Maximum memory that the value of a JSON text takes, its strings not included. Marks within strings are counted as well. */
export function parsedBytes(text: Uint8Array): number {
  let marks = 0;
  for (let at = 0; at < text.length; at++) marks += MARKS[text[at] as number] as number;
  return marks * BYTES_PER_MARK;
}
