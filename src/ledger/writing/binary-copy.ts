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

const NIBBLES = new Uint8Array(128);
for (let i = 0; i < 16; i++) NIBBLES['0123456789abcdef'.charCodeAt(i)] = i;
const DASH = 0x2d;
const TWO_32 = 0x1_0000_0000;

/** Writes the 16 bytes of a UUID given in canonical form. */
export function writeUuid(buffer: Buffer, at: number, text: string): void {
  let to = at;
  for (let i = 0; i < 36; i += 2) {
    if (text.charCodeAt(i) === DASH) i++;
    const high = NIBBLES[text.charCodeAt(i)] as number;
    buffer[to++] = (high << 4) | (NIBBLES[text.charCodeAt(i + 1)] as number);
  }
}

/** A buffer that takes rows as Postgres receives them: before each value its length in 32 bits, all of it big-endian. */
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
    for (let i = 0; i < text.length; i++) {
      const code = text.charCodeAt(i);
      if (code > 0x7f) {
        at = start + this.#buffer.write(text, start);
        break;
      }
      this.#buffer[at++] = code;
    }
    this.#int32(at - start);
    this.#at = at;
  }
}
