import { unavailableError } from '../errors.ts';
import { isPostgresUnavailable } from '../platform/postgres.ts';
import { within } from '../platform/timing.ts';
import type { KeyRecord } from './caller.ts';

/** Reads the records of these keys; a key that does not exist is missing from the answer. Errors are those of Postgres. */
export type FetchKeys = (keyIds: readonly string[]) => Promise<KeyRecord[]>;

export type KeyCacheOptions = {
  readonly fetchKeys: FetchKeys;
  /** Most records held at once. Half as many, used in turn, are always at hand. Default 250 000 (1.1 KB each once it has called, so at most 280 MB). */
  readonly maxKeys?: number;
  /** How long 'there is no such key' is remembered, and for how many ids. Defaults 5 000 ms and 10 000. */
  readonly absentForMs?: number;
  readonly maxAbsent?: number;
  /** Most loads waiting for Postgres at once; one more is `unavailable`. Default 10 000, which it answers in 1.6 s. */
  readonly maxLoads?: number;
  /** A load that takes longer is `unavailable`. Default 2 000 ms. */
  readonly loadTimeoutMs?: number;
  /** Pause after a refresh that failed. Default 1 000 ms. */
  readonly refreshPauseMs?: number;
};

type Entry = { readonly record: KeyRecord; readonly epoch: number };

/** Keys re-read with one query. */
const REFRESH_BATCH = 256;
/** Keys waiting to be re-read; those beyond wait for a later use. */
const MAX_TO_REFRESH = 4_096;

/**
 * The API keys this gateway has seen, so that a call asks Postgres nothing.
 *
 *            get() hit in old ──► moves to young
 *   young ◄──────────────────── old
 *     └── full: becomes old, and what was old is dropped
 *
 * Two generations make a hit one `Map.get` and no bookkeeping, where an exact LRU deletes and inserts on every hit.
 *
 * A record is *fresh* or *stale*. `invalidate` (the key changed) removes it at once. `markAllStale` (messages may have
 * been missed) keeps everything: a stale record is served and re-read in the background, and goes on being served
 * while Postgres is away. That a revoked key stays out meanwhile does not rest on this cache: the status beside the
 * token bucket in Redis decides it.
 *
 * Nothing read before a change is put back after it: an invalidation forgets the load under way, whose result then
 * finds itself replaced and is not kept; a refresh only replaces the very entry it set out to replace.
 */
export class KeyCache {
  readonly #fetchKeys: FetchKeys;
  readonly #generationSize: number;
  readonly #absentForMs: number;
  readonly #maxAbsent: number;
  readonly #maxLoads: number;
  readonly #loadTimeoutMs: number;
  readonly #refreshPauseMs: number;

  #young = new Map<string, Entry>();
  #old = new Map<string, Entry>();
  /** Entries of an earlier epoch are stale. */
  #epoch = 0;
  /** Ids without a key → when to forget that (ms of `performance.now`). Insertion order is expiry order. */
  readonly #absent = new Map<string, number>();
  readonly #loads = new Map<string, Promise<KeyRecord | null>>();
  /** Queries, not waits: a load that timed out or was forgotten counts until Postgres has answered it. */
  #loadsUnderWay = 0;
  readonly #toRefresh = new Map<string, Entry>();
  #refresh: 'idle' | 'running' | 'paused' = 'idle';

  constructor(options: KeyCacheOptions) {
    this.#fetchKeys = options.fetchKeys;
    this.#generationSize = Math.max(1, Math.floor((options.maxKeys ?? 250_000) / 2));
    this.#absentForMs = options.absentForMs ?? 5_000;
    this.#maxAbsent = options.maxAbsent ?? 10_000;
    this.#maxLoads = options.maxLoads ?? 10_000;
    this.#loadTimeoutMs = options.loadTimeoutMs ?? 2_000;
    this.#refreshPauseMs = options.refreshPauseMs ?? 1_000;
  }

  /** Records held now. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** The record when it is at hand, without waiting; undefined says 'not loaded', not 'no such key'. */
  get(keyId: string): KeyRecord | undefined {
    let entry = this.#young.get(keyId);
    if (entry === undefined) {
      entry = this.#old.get(keyId);
      if (entry === undefined) return undefined;
      this.#put(keyId, entry);
    }
    if (entry.epoch !== this.#epoch) this.#refreshLater(keyId, entry);
    return entry.record;
  }

  /**
   * The record, from Postgres when it is not at hand; null when there is no such key. Callers that ask for the same key
   * at the same time share one query.
   *
   * @throws ApiError `unavailable` when Postgres is away, too slow, or already has too many loads waiting
   */
  load(keyId: string): Promise<KeyRecord | null> {
    const record = this.get(keyId);
    if (record !== undefined) return Promise.resolve(record);
    if (this.#isAbsent(keyId)) return Promise.resolve(null);
    return this.reload(keyId);
  }

  /**
   * The record as Postgres has it now, also when one is at hand; that one stays when Postgres is away. As `load` in all else.
   */
  reload(keyId: string): Promise<KeyRecord | null> {
    const underWay = this.#loads.get(keyId);
    if (underWay !== undefined) return underWay;
    if (this.#loadsUnderWay >= this.#maxLoads) return Promise.reject(unavailableError());
    const load: Promise<KeyRecord | null> = this.#fetchOne(keyId, () => this.#loads.get(keyId) === load);
    this.#loads.set(keyId, load);
    // Both outcomes are the caller's; here only the bookkeeping ends.
    load.then(
      () => this.#endLoad(keyId, load),
      () => this.#endLoad(keyId, load),
    );
    return load;
  }

  /** The key was created or changed: forget what is known of it, and what is being read. */
  invalidate(keyId: string): void {
    this.#young.delete(keyId);
    this.#old.delete(keyId);
    this.#absent.delete(keyId);
    this.#loads.delete(keyId);
  }

  /**
   * The account changed: forget its keys. Looks at every record (a few ms for 100 000), which is cheaper than an index
   * kept for something that happens rarely.
   */
  invalidateAccount(accountId: string): void {
    for (const generation of [this.#young, this.#old]) {
      for (const [keyId, entry] of generation) if (entry.record.accountId === accountId) generation.delete(keyId);
    }
    // Whose keys are being read is not known yet.
    this.#loads.clear();
  }

  /** Messages may have been missed: re-read every record when it is next used, and go on serving it until then. */
  markAllStale(): void {
    this.#epoch++;
    this.#absent.clear();
    this.#loads.clear();
    this.#toRefresh.clear();
  }

  async #fetchOne(keyId: string, isCurrent: () => boolean): Promise<KeyRecord | null> {
    try {
      const [record] = await this.#inTime(this.#countedFetch(keyId));
      if (isCurrent()) {
        if (record === undefined) this.#rememberAbsent(keyId);
        else this.#put(keyId, { record, epoch: this.#epoch });
      }
      return record ?? null;
    } catch (error) {
      throw isPostgresUnavailable(error) ? unavailableError(error) : error;
    }
  }

  async #countedFetch(keyId: string): Promise<KeyRecord[]> {
    this.#loadsUnderWay++;
    try {
      return await this.#fetchKeys([keyId]);
    } finally {
      this.#loadsUnderWay--;
    }
  }

  #endLoad(keyId: string, load: Promise<KeyRecord | null>): void {
    if (this.#loads.get(keyId) === load) this.#loads.delete(keyId);
  }

  /** A network that swallows packets gives no error for minutes: the wait is bounded here. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    return within(work, this.#loadTimeoutMs, () => unavailableError());
  }

  #put(keyId: string, entry: Entry): void {
    this.#old.delete(keyId);
    if (this.#young.size >= this.#generationSize && !this.#young.has(keyId)) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(keyId, entry);
  }

  #isAbsent(keyId: string): boolean {
    const until = this.#absent.get(keyId);
    if (until === undefined) return false;
    if (performance.now() < until) return true;
    this.#absent.delete(keyId);
    return false;
  }

  #rememberAbsent(keyId: string): void {
    this.#absent.delete(keyId);
    if (this.#absent.size >= this.#maxAbsent) {
      const [oldest] = this.#absent.keys();
      this.#absent.delete(oldest as string);
    }
    this.#absent.set(keyId, performance.now() + this.#absentForMs);
  }

  #refreshLater(keyId: string, entry: Entry): void {
    if (this.#refresh === 'paused' || this.#toRefresh.size >= MAX_TO_REFRESH) return;
    this.#toRefresh.set(keyId, entry);
    if (this.#refresh === 'running') return;
    this.#refresh = 'running';
    void this.#refreshAll();
  }

  /** Re-reads what was used since it went stale, batch by batch. Never throws. */
  async #refreshAll(): Promise<void> {
    // Whatever else is used in this turn joins the first batch.
    await new Promise(setImmediate);
    try {
      while (this.#toRefresh.size > 0) await this.#refreshBatch();
      this.#refresh = 'idle';
    } catch {
      // Stale records keep being served; the next use after the pause tries again.
      this.#toRefresh.clear();
      this.#refresh = 'paused';
      setTimeout(() => {
        this.#refresh = 'idle';
      }, this.#refreshPauseMs).unref();
    }
  }

  async #refreshBatch(): Promise<void> {
    const batch: [string, Entry][] = [];
    for (const stale of this.#toRefresh) if (batch.push(stale) === REFRESH_BATCH) break;
    const epoch = this.#epoch;
    const records = await this.#inTime(this.#fetchKeys(batch.map(([keyId]) => keyId)));
    const byId = new Map(records.map((record) => [record.keyId, record]));
    for (const [keyId, entry] of batch) {
      if (this.#toRefresh.get(keyId) === entry) this.#toRefresh.delete(keyId);
      const generation = this.#young.get(keyId) === entry ? this.#young : this.#old;
      if (generation.get(keyId) !== entry) continue;
      const record = byId.get(keyId);
      if (record === undefined) generation.delete(keyId);
      else generation.set(keyId, { record, epoch });
    }
  }
}
