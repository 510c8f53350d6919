import { unavailableError } from '../errors.ts';
import { Coalescer } from '../platform/coalescer.ts';
import { connectionError, isPostgresUnavailable } from '../platform/postgres.ts';
import { within } from '../platform/timing.ts';
import type { KeyRecord } from './caller.ts';

/** Reads the records of these keys; the result lacks keys that do not exist. Rejects with the errors of Postgres. */
type FetchKeys = (keyIds: readonly string[]) => Promise<KeyRecord[]>;

export type KeyCacheOptions = {
  readonly fetchKeys: FetchKeys;
  /**
   * Maximum number of records in memory, in two generations of half as many each. When the young generation is full, it becomes the
   * old one, and what was left in the old one is dropped: it was not used since the last change. So if at most `maxKeys / 2` keys
   * are in use, they all stay in memory. Default 250 000: a record takes 1.1 KB once its key has called, 280 MB in all.
   */
  readonly maxKeys?: number;
  /** How long the cache remembers that a key does not exist (default 5 000 ms), and for how many ids (default 10 000). */
  readonly absentForMs?: number;
  readonly maxAbsent?: number;
  /** Maximum number of keys waiting for Postgres; beyond it, loads are `unavailable`. Default 10 000. */
  readonly maxLoads?: number;
  /** Minimum time between the beginnings of two queries that load keys. Default 3 ms; see `LOAD_GAP_MS`. */
  readonly loadGapMs?: number;
  /** A load that takes longer is `unavailable`. Default 2 000 ms. */
  readonly loadTimeoutMs?: number;
  /** Pause after a failed refresh. Default 1 000 ms. */
  readonly refreshPauseMs?: number;
};

type Entry = { readonly record: KeyRecord; readonly epoch: number };

/** Maximum number of keys read with one query. */
const MAX_BATCH = 256;
/**
 * Without the gap, a thousand unknown keys a second made a query each and took all connections of the pool: callers waited for 2 to
 * 3 s. A first call waits for the gap only if another unknown key was requested within it.
 */
const LOAD_GAP_MS = 3;
/** Maximum number of keys waiting to be re-read. Beyond it, a stale key is queued at a later use. */
const MAX_TO_REFRESH = 4_096;

/**
 * The API keys that this gateway has seen, so that a call need not ask Postgres.
 *
 *            get() finds it in old ──► moves to young
 *   young ◄──────────────────────────── old
 *     └── full: young becomes old, and what was old is dropped
 *
 * With two generations, a hit in `young` is one `Map.get` and no bookkeeping; an exact LRU deletes and inserts on every hit.
 *
 * A record is *fresh* or *stale*. `invalidate` (the key changed) removes it at once. `markAllStale` (messages may have been lost)
 * removes no record: a stale record is served and re-read in the background, and is still served while Postgres is away. A revoked
 * key is refused even then, because the status beside the token bucket in Redis decides that, not this cache.
 *
 * A record that was read before an invalidation is never stored after it. The invalidation removes the key's load from `#loads`,
 * and a load that is no longer there does not store its result. A refresh replaces an entry only if it is still the stale entry for
 * which the refresh began.
 */
export class KeyCache {
  readonly #fetchKeys: FetchKeys;
  readonly #generationSize: number;
  readonly #absentForMs: number;
  readonly #maxAbsent: number;
  readonly #maxLoads: number;
  readonly #records: Coalescer<null, KeyRecord | null>;
  readonly #loadTimeoutMs: number;
  readonly #refreshPauseMs: number;

  #young = new Map<string, Entry>();
  #old = new Map<string, Entry>();
  /** Increased by `markAllStale`: an entry with a lower epoch is stale. */
  #epoch = 0;
  /** Id of a key that does not exist → when to forget the id (ms of `performance.now`). Insertion order is expiry order. */
  readonly #absent = new Map<string, number>();
  readonly #loads = new Map<string, Promise<KeyRecord | null>>();
  /** Number of keys in queries under way. A load that timed out or was forgotten counts until Postgres has answered it. */
  #unanswered = 0;
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
    this.#records = new Coalescer({
      maxBatch: MAX_BATCH,
      maxWaiting: this.#maxLoads,
      timeoutMs: this.#loadTimeoutMs,
      gapMs: options.loadGapMs ?? LOAD_GAP_MS,
      load: (batch) => this.#fetchBatch(Array.from(batch.keys())),
      isAway: isPostgresUnavailable,
      // Each query uses a connection of the pool. That one connection was cut says nothing about the next.
      isAwayForAll: false,
    });
  }

  /** Number of records in memory. */
  get size(): number {
    return this.#young.size + this.#old.size;
  }

  /** The record if it is in memory. Undefined means 'not loaded', not 'no such key'. */
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
   * The record, read from Postgres if it is not in memory; null when there is no such key. Concurrent loads share queries.
   *
   * @throws ApiError `unavailable` when Postgres is away or too slow, or when too many loads are waiting
   */
  load(keyId: string): Promise<KeyRecord | null> {
    const record = this.get(keyId);
    if (record !== undefined) return Promise.resolve(record);
    if (this.#isAbsent(keyId)) return Promise.resolve(null);
    return this.reload(keyId);
  }

  /**
   * Like `load`, but asks Postgres even if the record is in memory. When Postgres is away, this rejects, and the record in memory
   * stays.
   */
  reload(keyId: string): Promise<KeyRecord | null> {
    const underWay = this.#loads.get(keyId);
    if (underWay !== undefined) return underWay;
    if (this.#unanswered + this.#records.waiting >= this.#maxLoads) return Promise.reject(unavailableError());
    const load: Promise<KeyRecord | null> = this.#fetchOne(keyId, () => this.#loads.get(keyId) === load);
    this.#loads.set(keyId, load);
    // The caller handles both outcomes. Only the bookkeeping ends here.
    load.then(
      () => this.#endLoad(keyId, load),
      () => this.#endLoad(keyId, load),
    );
    return load;
  }

  /** The key changed: forgets its record, and any load of it under way. */
  invalidate(keyId: string): void {
    this.#young.delete(keyId);
    this.#old.delete(keyId);
    this.#absent.delete(keyId);
    this.#loads.delete(keyId);
  }

  /**
   * The account changed: forgets its keys. This examines every record (a few ms for 100 000), which is cheaper than an index for
   * something that happens rarely.
   */
  invalidateAccount(accountId: string): void {
    for (const generation of [this.#young, this.#old]) {
      for (const [keyId, entry] of generation) if (entry.record.accountId === accountId) generation.delete(keyId);
    }
    // While a key is being loaded, its account is not known, so all loads under way are forgotten.
    this.#loads.clear();
  }

  /** Messages may have been missed: each record is re-read after its next use. That use still gets the stale record. */
  markAllStale(): void {
    this.#epoch++;
    this.#absent.clear();
    this.#loads.clear();
    this.#toRefresh.clear();
  }

  async #fetchOne(keyId: string, isCurrent: () => boolean): Promise<KeyRecord | null> {
    try {
      const record = await this.#records.ask(keyId, null);
      if (isCurrent()) {
        if (record === null) this.#rememberAbsent(keyId);
        else this.#put(keyId, { record, epoch: this.#epoch });
      }
      return record;
    } catch (error) {
      throw isPostgresUnavailable(error) ? unavailableError(error) : error;
    }
  }

  async #fetchBatch(keyIds: readonly string[]): Promise<(keyId: string) => KeyRecord | null> {
    this.#unanswered += keyIds.length;
    const answered = this.#fetchKeys(keyIds).finally(() => {
      this.#unanswered -= keyIds.length;
    });
    const records = await this.#inTime(answered);
    const byId = new Map(records.map((record) => [record.keyId, record]));
    return (keyId) => byId.get(keyId) ?? null;
  }

  #endLoad(keyId: string, load: Promise<KeyRecord | null>): void {
    if (this.#loads.get(keyId) === load) this.#loads.delete(keyId);
  }

  /** Bounds the wait: a network that drops packets gives no error for minutes. */
  #inTime<T>(work: Promise<T>): Promise<T> {
    const late = () => connectionError('ETIMEDOUT', `the keys were not loaded within ${this.#loadTimeoutMs} ms`);
    return within(work, this.#loadTimeoutMs, late);
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

  /** Re-reads, batch by batch, the stale records that were used. Never throws. */
  async #refreshAll(): Promise<void> {
    // Other records used in this turn of the event loop join the first batch.
    await new Promise(setImmediate);
    try {
      while (this.#toRefresh.size > 0) await this.#refreshBatch();
      this.#refresh = 'idle';
    } catch {
      // Stale records are still served. The first use of such a record after the pause tries to re-read it again.
      this.#toRefresh.clear();
      this.#refresh = 'paused';
      setTimeout(() => {
        this.#refresh = 'idle';
      }, this.#refreshPauseMs).unref();
    }
  }

  async #refreshBatch(): Promise<void> {
    const batch: [string, Entry][] = [];
    for (const stale of this.#toRefresh) if (batch.push(stale) === MAX_BATCH) break;
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
