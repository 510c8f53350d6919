/**
 * Writes rows for `COPY … FROM STDIN (FORMAT binary)`, and the header and trailer around them.
 * Tested by test/ledger/writing/call-rows.test.ts and flush.test.ts.
 */

/** Postgres counts days and microseconds from 2000-01-01 UTC. */
const POSTGRES_EPOCH_MS = 946_684_800_000;
const DAY_MS = 86_400_000;
const POSTGRES_EPOCH_DAY = POSTGRES_EPOCH_MS / DAY_MS;

export const CHUNK_BYTES = 65_536;
export const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
export const TRAILER = Buffer.from([0xff, 0xff]);

/** Joins small chunks: each chunk is a separate message, a send here and a wake-up of Postgres, and a small flush has many. */
export function* inMessages(chunks: Iterable<Buffer>): Generator<Buffer> {
  let together: Buffer[] = [];
  let size = 0;
  for (const chunk of chunks) {
    if (size > 0 && size + chunk.length > CHUNK_BYTES) {
      yield Buffer.concat(together);
      together = [];
      size = 0;
    }
    together.push(chunk);
    size += chunk.length;
  }
  yield Buffer.concat(together);
}

const HIGH_NIBBLES = new Uint8Array(256);
const LOW_NIBBLES = new Uint8Array(256);
for (let i = 0; i < 16; i++) {
  const digit = '0123456789abcdef'.charCodeAt(i);
  HIGH_NIBBLES[digit] = i << 4;
  LOW_NIBBLES[digit] = i;
}
/** Where the two digits of each byte begin in the canonical form of a UUID. */
const DIGITS_AT = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34];
const digits = Buffer.alloc(36);
const TWO_32 = 0x1_0000_0000;
/** V8 makes a part of a text a slice if it is at least this long. Letters of a slice take longer to read. */
const SLICED_LENGTH = 13;

/**
 * Writes the 16 bytes of a UUID given in canonical form. The text is copied first, in one call: the ids of an event are slices of
 * its text, and reading each letter of a slice with `charCodeAt` took 0.4 µs more per UUID, and an event has four.
 */
export function writeUuid(buffer: Buffer, at: number, text: string): void {
  digits.write(text, 0, 36, 'latin1');
  for (let i = 0; i < 16; i++) {
    const from = DIGITS_AT[i] as number;
    buffer[at + i] =
      (HIGH_NIBBLES[digits[from] as number] as number) | (LOW_NIBBLES[digits[from + 1] as number] as number);
  }
}

/** A buffer for rows in the form of Postgres: each value is preceded by its length in 32 bits, all big-endian. */
export class Chunk {
  readonly #buffer: Buffer;
  readonly #view: DataView;
  readonly #rowEnds: number[] = [];
  #at = 0;

  constructor(size: number) {
    this.#buffer = Buffer.allocUnsafeSlow(size);
    this.#view = new DataView(this.#buffer.buffer);
  }

  get free(): number {
    return this.#buffer.length - this.#at;
  }

  /** Ends a row with its last column, the journal row's id. It is left empty here, and `finish` fills it in. */
  endWithJournalId(): void {
    this.bigint(0);
    this.#rowEnds.push(this.#at);
  }

  finish(journalId: number): Buffer {
    for (const end of this.#rowEnds) this.#setInt64(end - 8, journalId);
    return this.#buffer.subarray(0, this.#at);
  }

  int16(value: number): void {
    this.#view.setInt16(this.#at, value);
    this.#at += 2;
  }

  #int32(value: number): void {
    this.#view.setInt32(this.#at, value);
    this.#at += 4;
  }

  smallint(value: number): void {
    this.#int32(2);
    this.int16(value);
  }

  nulls(columns: number): void {
    for (let i = 0; i < columns; i++) this.#int32(-1);
  }

  boolean(value: boolean): void {
    this.#int32(1);
    this.#buffer[this.#at++] = value ? 1 : 0;
  }

  #setInt64(at: number, value: number): void {
    const high = Math.floor(value / TWO_32);
    this.#view.setInt32(at, high);
    this.#view.setUint32(at + 4, value - high * TWO_32);
  }

  bigint(value: number): void {
    this.#int32(8);
    this.#setInt64(this.#at, value);
    this.#at += 8;
  }

  /** The UTC day that contains this time. */
  date(ms: number): void {
    this.#int32(4);
    this.#int32(Math.floor(ms / DAY_MS) - POSTGRES_EPOCH_DAY);
  }

  /** Computed in two halves, because a time in microseconds may exceed 2^53. */
  timestamp(unixMs: number): void {
    const ms = unixMs - POSTGRES_EPOCH_MS;
    const high = Math.floor(ms / TWO_32);
    const low = (ms - high * TWO_32) * 1000;
    const carry = Math.floor(low / TWO_32);
    this.#int32(8);
    this.#int32(high * 1000 + carry);
    this.#view.setUint32(this.#at, low - carry * TWO_32);
    this.#at += 4;
  }

  uuid(text: string): void {
    this.#int32(16);
    writeUuid(this.#buffer, this.#at, text);
    this.#at += 16;
  }

  /** A UUID given as its 16 bytes in a latin1 string. */
  uuidBytes(bytes: string): void {
    this.#int32(16);
    this.#at += this.#buffer.write(bytes, this.#at, 16, 'latin1');
  }

  text(text: string): void {
    const start = this.#at + 4;
    let at = start;
    // Copying the letters of a short text costs less than calling the encoder, which is needed only for text beyond ASCII.
    const letters = text.length < SLICED_LENGTH ? text.length : 0;
    for (let i = 0; i < letters; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) break;
      this.#buffer[at++] = code;
    }
    if (at - start < text.length) at = start + this.#buffer.write(text, start);
    this.#int32(at - start);
    this.#at = at;
  }
}
