/**
 * Encodes KEYS and ARGV of a script directly as the bytes that Redis receives. A Redis client would copy them into an array,
 * check the type of each and measure it as UTF-8: 2.9 µs for the sixteen arguments of a call. Joining them into one text took
 * 2.2 µs. Writing them one by one, with the constant parts encoded beforehand, takes 0.7 µs (measured with 16 calls in a batch).
 *
 * All text must be ASCII: lengths are counted in characters, and each character is sent as one byte (latin1). A character beyond
 * latin1 would become a different character, but could never shift the beginning of the next argument.
 *
 * One encoder serves any number of trips, one after the other; `begin` drops what was encoded and never sent.
 *
 * Tested by test/platform/script-connection.test.ts.
 */
export class TripEncoder {
  readonly #keys = new ArgumentBuffer();
  readonly #args = new ArgumentBuffer();

  begin(): void {
    this.#keys.clear();
    this.#args.clear();
  }

  key(name: string): void {
    this.keys(bulk(name), 1);
  }

  arg(text: string): void {
    this.args(bulk(text), 1);
  }

  /** @param encoded `count` keys, each as `bulk` encodes it */
  keys(encoded: string, count: number): void {
    this.#keys.write(encoded, count);
  }

  args(encoded: string, count: number): void {
    this.#args.write(encoded, count);
  }

  /** Returns the whole `EVALSHA` command (RESP: an array of bulk strings), and clears the encoder. */
  take(sha: string): Buffer {
    const keys = this.#keys;
    const args = this.#args;
    const head = `*${3 + keys.count + args.count}\r\n${bulk('evalsha')}${bulk(sha)}${bulk(String(keys.count))}`;
    const wire = Buffer.allocUnsafe(head.length + keys.length + args.length);
    wire.write(head, 'latin1');
    keys.moveTo(wire, head.length);
    args.moveTo(wire, wire.length - args.length);
    return wire;
  }
}

/** A bulk string: `$<length>\r\n<text>\r\n`. */
export const bulk = (text: string): string => `${bulkHead(text.length)}${text}\r\n`;

/** The head of a bulk string of `length` characters. */
export const bulkHead = (length: number): string => `$${length}\r\n`;

/** Enough for batches of the usual size. A larger batch makes the buffer grow, and it never shrinks again. */
const INITIAL_BYTES = 16_384;

/** Encoded arguments in memory that is reused for each trip. */
class ArgumentBuffer {
  count = 0;
  length = 0;
  #bytes = Buffer.allocUnsafeSlow(INITIAL_BYTES);

  write(encoded: string, count: number): void {
    if (this.length + encoded.length > this.#bytes.length) this.#grow(encoded.length);
    this.length += this.#bytes.write(encoded, this.length, 'latin1');
    this.count += count;
  }

  moveTo(target: Buffer, at: number): void {
    this.#bytes.copy(target, at, 0, this.length);
    this.clear();
  }

  clear(): void {
    this.length = 0;
    this.count = 0;
  }

  #grow(needed: number): void {
    const larger = Buffer.allocUnsafeSlow(2 * (this.#bytes.length + needed));
    this.#bytes.copy(larger, 0, 0, this.length);
    this.#bytes = larger;
  }
}
