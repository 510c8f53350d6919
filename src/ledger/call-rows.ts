import { timeOfId } from '../platform/ids.ts';
import { chargedMicros, feeMicros, type UsageEvent } from './usage-event.ts';

/** What `callRows` makes rows for: columns in its order, of exactly the types it writes. */
export const COPY_CALLS_SQL = `
COPY calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, outcome, status, amount, fee,
            free_tier, latency_us, request_bytes, response_bytes, created_at, journal_id)
FROM STDIN (FORMAT binary)`;
const COLUMNS = 18;

/** Postgres counts days and microseconds from 2000-01-01 UTC. */
const POSTGRES_EPOCH_MS = 946_684_800_000;
const DAY_MS = 86_400_000;
const POSTGRES_EPOCH_DAY = POSTGRES_EPOCH_MS / DAY_MS;

const CHUNK_BYTES = 65_536;
/** All of a row but its texts: 18 lengths and fixed-size values. */
const FIXED_ROW_BYTES = 256;
const HEADER = Buffer.from('PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0', 'latin1');
const TRAILER = Buffer.from([0xff, 0xff]);

/**
 * Calls as rows for `COPY … (FORMAT binary)`. COPY took Postgres 8.4 µs an event, INSERT from arrays 11.1 (17 text arrays
 * to parse, one WAL record a row); COPY in text form 11.5, and twice the CPU here.
 */
export class CallRows {
  readonly #chunks: Chunk[] = [];

  constructor(events: readonly UsageEvent[], feeBasisPoints: number) {
    let chunk: Chunk | null = null;
    for (const event of events) {
      const most = FIXED_ROW_BYTES + 3 * (event.keyId.length + event.method.length + event.path.length);
      if (chunk === null || chunk.free < most) {
        chunk = new Chunk(Math.max(CHUNK_BYTES, most));
        this.#chunks.push(chunk);
      }
      writeRow(chunk, event, feeBasisPoints);
    }
  }

  /** The rows, which get the number of their journal row only now: they are made before there is one. */
  chunks(journalId: number): Buffer[] {
    return this.#chunks.map((chunk) => chunk.finish(journalId));
  }
}

/** The data of one COPY. Postgres stores the first chunks while the last are sent. */
export function* copyData(pages: readonly { readonly rows: CallRows }[], journalId: number): Generator<Buffer> {
  yield HEADER;
  for (const { rows } of pages) yield* rows.chunks(journalId);
  yield TRAILER;
}

function writeRow(chunk: Chunk, event: UsageEvent, feeBasisPoints: number): void {
  const amount = chargedMicros(event);
  chunk.int16(COLUMNS);
  chunk.date(timeOfId(event.usageId));
  chunk.uuid(event.usageId);
  chunk.uuid(event.accountId);
  chunk.text(event.keyId);
  chunk.uuid(event.providerId);
  chunk.uuid(event.serviceId);
  chunk.text(event.method);
  chunk.text(event.path);
  chunk.text(event.outcome);
  chunk.smallint(event.status);
  chunk.bigint(amount);
  chunk.bigint(feeMicros(amount, feeBasisPoints));
  chunk.boolean(event.freeTier);
  chunk.bigint(event.latencyUs);
  chunk.bigint(event.requestBytes);
  chunk.bigint(event.responseBytes);
  chunk.timestamp(event.admittedAtMs);
  chunk.endWithJournalId();
}

const NIBBLES = new Uint8Array(128);
for (let i = 0; i < 16; i++) NIBBLES['0123456789abcdef'.charCodeAt(i)] = i;
const DASH = 0x2d;
const TWO_32 = 0x1_0000_0000;

/** Values as Postgres receives them: a length in 32 bits, then the value, big end first. */
class Chunk {
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

  /** The last column, left open. */
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

  /** A day, from any time within it. */
  date(ms: number): void {
    this.#int32(4);
    this.#int32(Math.floor(ms / DAY_MS) - POSTGRES_EPOCH_DAY);
  }

  /** In two parts, because a time in microseconds may be beyond 2^53. */
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
    const buffer = this.#buffer;
    let at = this.#at;
    for (let i = 0; i < 36; i += 2) {
      if (text.charCodeAt(i) === DASH) i++;
      const high = NIBBLES[text.charCodeAt(i)] as number;
      buffer[at++] = (high << 4) | (NIBBLES[text.charCodeAt(i + 1)] as number);
    }
    this.#at = at;
  }

  text(text: string): void {
    const start = this.#at + 4;
    let at = start;
    // A call into the encoder costs more than the letters of a short text.
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
