import { CHUNK_BYTES, Chunk, HEADER, TRAILER, writeUuid } from './binary-copy.ts';

/** The statement that stores the rows of `entryData`. The columns are in the order and of the types that `entryData` writes. */
export const COPY_ENTRIES_SQL = `
COPY entries (account_id, ledger, amount, journal_id) FROM STDIN (FORMAT binary)`;
const COLUMNS = 4;
/** Maximum bytes of a row: 58 with the longest ledger name, 'earnings'. */
const MOST_ROW_BYTES = 64;

const LEDGERS = ['wallet', 'earnings', 'fees'] as const;
type UsageLedger = (typeof LEDGERS)[number];

/** Bytes of a key: the account's id in 16, and the index of the ledger in `LEDGERS`. */
const KEY_BYTES = 17;

/**
 * The sums of one page of calls, by account and ledger. They are packed into a buffer because a page waits for its flush: in that
 * time 10 000 strings would leave the garbage collector's young generation, and collecting them would cost more. Tested by
 * test/ledger/writing/flush.test.ts.
 */
export class PackedEntries {
  readonly #keys: Buffer;
  readonly #amounts: Float64Array;
  #size = 0;

  /** @param most upper bound for the number of entries that will be added */
  constructor(most: number) {
    this.#keys = Buffer.allocUnsafeSlow(most * KEY_BYTES);
    this.#amounts = new Float64Array(most);
  }

  add(accountId: string, ledger: UsageLedger, amountMicros: number): void {
    const at = this.#size * KEY_BYTES;
    writeUuid(this.#keys, at, accountId);
    this.#keys[at + KEY_BYTES - 1] = LEDGERS.indexOf(ledger);
    this.#amounts[this.#size++] = amountMicros;
  }

  addTo(sums: Map<string, number>): void {
    for (let i = 0; i < this.#size; i++) {
      const key = this.#keys.toString('latin1', i * KEY_BYTES, (i + 1) * KEY_BYTES);
      sums.set(key, (sums.get(key) ?? 0) + (this.#amounts[i] as number));
    }
  }
}

/** An amount, never 0, for each account and ledger. The key is that of `PackedEntries` as a latin1 string. */
type EntrySums = ReadonlyMap<string, number>;

/** Adds up the entries of a journal row over all pages, because an account may occur in several pages. */
export function entrySums(pages: readonly { readonly entries: PackedEntries }[]): EntrySums {
  const sums = new Map<string, number>();
  for (const { entries } of pages) entries.addTo(sums);
  for (const [key, amount] of sums) if (amount === 0) sums.delete(key);
  return sums;
}

/** The data of one COPY of entries, in chunks. */
export function* entryData(sums: EntrySums, journalId: number): Generator<Buffer> {
  yield HEADER;
  let chunk = new Chunk(CHUNK_BYTES);
  for (const [key, amount] of sums) {
    if (chunk.free < MOST_ROW_BYTES) {
      yield chunk.finish(journalId);
      chunk = new Chunk(CHUNK_BYTES);
    }
    chunk.int16(COLUMNS);
    chunk.uuidBytes(key);
    chunk.text(LEDGERS[key.charCodeAt(KEY_BYTES - 1)] as UsageLedger);
    chunk.bigint(amount);
    chunk.endWithJournalId();
  }
  yield chunk.finish(journalId);
  yield TRAILER;
}
