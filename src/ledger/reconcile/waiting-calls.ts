import { entryText } from '../history/marks.ts';
import { chargedMicros } from '../usage-event.ts';
import { decodeEntry, type RawEntry } from '../writing/stream.ts';
import type { StreamedCall } from './identity.ts';

/** What compare-wallets.lua says about the stream. */
type StreamReply = {
  /** Whether the last entry that was read is still there, unchanged. */
  readonly isLastThere: boolean;
  /** Id of the oldest entry; '': there is none. */
  readonly oldest: string;
  /** The entries after the last one that was read; all entries if that one is gone. */
  readonly entries: readonly RawEntry[];
};

/**
 * The calls whose events wait in a shard's stream, kept between two looks at the stream, so that each event is read once.
 *
 * Earlier readings count while their last entry is still in the stream, unchanged: it is then the same stream, because no two
 * entries name the same call. Otherwise everything was stored and trimmed, or Redis has begun the stream anew, and all of it is
 * read again. Ids alone do not suffice: after FLUSHALL a Redis whose clock was ahead gives smaller ones.
 *
 * Tested by test/ledger/reconcile/shard-view.test.ts.
 */
export class WaitingCalls {
  readonly #shard: number;
  readonly #calls = new Map<string, StreamedCall[]>();
  /** The entries read and not yet forgotten, in the order of the stream: those of `#calls`, and entries without a call (null). */
  readonly #kept: { readonly id: string; readonly accountId: string | null }[] = [];
  #last: RawEntry | null = null;
  #hasUnreadable = false;

  constructor(shard: number) {
    this.#shard = shard;
  }

  /** The number of entries that are kept. */
  get size(): number {
    return this.#kept.length;
  }

  /** Whether there was an entry that this version cannot read: it may belong to any account. */
  get hasUnreadable(): boolean {
    return this.#hasUnreadable;
  }

  /** The last entry that was read, in the form for compare-wallets.lua: its id and its text. */
  get lastRead(): readonly [id: string, text: string] {
    return this.#last === null ? ['', ''] : [this.#last[0], entryText(this.#last[1])];
  }

  /** The calls of the account whose events the stream had when it was last read, stored or not. */
  of(accountId: string): readonly StreamedCall[] {
    return this.#calls.get(accountId) ?? [];
  }

  take({ isLastThere, oldest, entries }: StreamReply): void {
    if (isLastThere) this.#forgetBefore(oldest);
    else this.#forget(this.#kept.length);
    for (const entry of entries) this.#add(entry);
    this.#last = entries.at(-1) ?? (isLastThere ? this.#last : null);
  }

  #add([id, fields]: RawEntry): void {
    const { event, isNewer } = decodeEntry(this.#shard, id, fields);
    this.#hasUnreadable ||= isNewer || event === null;
    this.#kept.push({ id, accountId: event?.accountId ?? null });
    if (event === null) return;
    const { usageId, accountId, serviceId, budgets } = event;
    const freeCall = event.freeTier && event.outcome === 'completed';
    const call = {
      usageId,
      accountId,
      serviceId,
      chargedMicros: chargedMicros(event),
      freeCall,
      budgets,
    };
    const calls = this.#calls.get(accountId);
    if (calls === undefined) this.#calls.set(accountId, [call]);
    else calls.push(call);
  }

  /** Forgets entries that have left the stream. They were stored before they were deleted, so Postgres has them. */
  #forgetBefore(oldest: string): void {
    const first = this.#kept.findIndex(({ id }) => !isYounger(oldest, id));
    this.#forget(first < 0 ? this.#kept.length : first);
  }

  /** Forgets the oldest entries. */
  #forget(count: number): void {
    for (const { accountId } of this.#kept.splice(0, count)) {
      if (accountId === null) continue;
      const calls = this.#calls.get(accountId) as StreamedCall[];
      calls.shift();
      if (calls.length === 0) this.#calls.delete(accountId);
    }
  }
}

/** Compares ids of stream entries: milliseconds and a number, joined by a dash. */
function isYounger(id: string, than: string): boolean {
  const [ms = 0, seq = 0] = id.split('-').map(Number);
  const [thanMs = 0, thanSeq = 0] = than.split('-').map(Number);
  return ms !== thanMs ? ms > thanMs : seq > thanSeq;
}
