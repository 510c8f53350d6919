import { setTimeout as pause } from 'node:timers/promises';
import { isUuid } from '../platform/ids.ts';
import type { Sql, Subscription } from '../platform/postgres.ts';
import { type Beside, BesideListings, type Uptime } from './beside.ts';
import type { Listing } from './listing.ts';
import { Announcements } from './notice/announcements.ts';
import type { Profile } from './providers/profile.ts';
import type { Quality } from './quality.ts';
import { Snapshot } from './snapshot.ts';
import { CHANNEL, selectBucketSums, selectCatalogPage, selectListings } from './sql.ts';

type CatalogLog = {
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
};

type CatalogOptions = {
  readonly sql: Sql;
  readonly log: CatalogLog;
  /** Interval of comparisons, which find changes whose message was lost. Default 30 000 ms. */
  readonly rereadMs?: number;
  /** Pause after a failed reading. Default 1 000 ms. */
  readonly retryMs?: number;
  /**
   * A query that takes longer has failed. Default 20 000 ms: longer than the statement timeout, with which Postgres ends slow
   * queries itself. This bound is for a network that drops packets.
   */
  readonly readTimeoutMs?: number;
  /** Another listener on the same connection. */
  readonly also?: Subscription['also'] & { readonly onListening: () => void };
};

/** Rows per query. Between two pages the event loop serves calls; a page of 500 keeps it busy for about 4 ms. */
const PAGE_SIZE = 500;
/** Maximum number of announced ids waiting to be read; beyond it, everything is read instead. */
const MAX_WAITING_IDS = 5_000;
/**
 * If more buckets than this differ, everything is read in one pass: a page of a few buckets costs Postgres as much as a page of
 * all.
 */
const MAX_BUCKETS_READ = 64;
/** Minimum time between two log lines about the same lasting fault. */
const LOG_EVERY_MS = 30_000;

/**
 * The catalog in memory: every listing, except removed ones and those of suspended accounts. It follows Postgres by messages
 * (LISTEN), and by a comparison each time a new LISTEN connection was made, and periodically: Postgres returns a checksum for
 * each of 256 buckets of listings, and only buckets whose checksum differs from the snapshot's are read. While Postgres is away, the last snapshot stays
 * in use.
 *
 * One loop does all readings, one at a time:
 *
 *     message ──► waiting ids ─┐
 *     (re)connected, timer ────┴─► loop: compare everything or read the waiting ids ──► snapshot
 *                                   └─ failed: log, pause, try again
 */
export class Catalog {
  readonly #sql: Sql;
  readonly #log: CatalogLog;
  readonly #rereadMs: number;
  readonly #retryMs: number;
  readonly #also: CatalogOptions['also'];
  readonly #readTimeoutMs: number;
  readonly #snapshot = new Snapshot((id) => this.#changed(id));
  readonly #beside = new BesideListings(
    (id) => this.#changed(id),
    (providerId) => this.#snapshot.activeOf(providerId),
  );
  readonly #listeners: ((id: string) => void)[] = [];
  readonly #stopping = new AbortController();
  readonly #waitingIds = new Set<string>();
  #everythingWaits = false;
  #loop: Promise<void> | null = null;
  #loaded = false;
  /** Announced terms, which replace the present ones in the snapshot when their time comes. */
  readonly #announcements = new Announcements((listing) => this.#snapshot.put(listing));
  #timer: NodeJS.Timeout | undefined;
  #unlisten: () => void = () => {};
  #attempted: () => void = () => {};
  #lastLogMs = Number.NEGATIVE_INFINITY;
  #failing = false;

  constructor(options: CatalogOptions) {
    this.#sql = options.sql;
    this.#log = options.log;
    this.#rereadMs = options.rereadMs ?? 30_000;
    this.#retryMs = options.retryMs ?? 1_000;
    this.#also = options.also;
    this.#readTimeoutMs = options.readTimeoutMs ?? 20_000;
  }

  /** The listing with this id, active or paused. Synchronous, because every call needs it. */
  get(id: string): Listing | undefined {
    const listing = this.#snapshot.get(id);
    return listing === undefined || listing.next === null ? listing : this.#announcements.current(listing);
  }

  /** All listings, active and paused, in no particular order. */
  listings(): Iterable<Listing> {
    return this.#snapshot.values();
  }

  /** @param listener called with the id of each listing that is added, changed or dropped, or whose `beside` changes */
  onChange(listener: (id: string) => void): void {
    this.#listeners.push(listener);
  }

  besideOf(listing: Pick<Listing, 'id' | 'providerId'>): Beside {
    return this.#beside.of(listing);
  }

  qualityOf(id: string): Quality {
    return this.#beside.qualityOf(id);
  }

  /** How many active listings a provider has. */
  activeOf(providerId: string): number {
    return this.#snapshot.activeOf(providerId).length;
  }

  /** See `BesideListings`. */
  setQualities(qualities: ReadonlyMap<string, Quality>): Promise<void> {
    return this.#beside.setQualities(qualities);
  }

  /** See `BesideListings`. */
  setUptimes(uptimes: ReadonlyMap<string, Uptime>): Promise<void> {
    return this.#beside.setUptimes(uptimes);
  }

  /** See `BesideListings`. */
  setProfiles(profiles: ReadonlyMap<string, Profile | null>, isAll = false): Promise<void> {
    return this.#beside.setProfiles(profiles, isAll);
  }

  /** Whether the catalog was read completely at least once. */
  ready(): boolean {
    return this.#loaded;
  }

  /** Applies a change that this gateway made, so that it need not wait for the message about it. */
  apply(listing: Listing): void {
    this.#snapshot.put(this.#announcements.watched(listing));
  }

  /**
   * Listens, then reads everything; in this order no change is missed. Never rejects. Resolves when the catalog is loaded, or
   * when the first reading has failed (Postgres is away). The catalog then keeps trying until `stop`.
   */
  async start(): Promise<void> {
    const attempted = new Promise<void>((resolve) => {
      this.#attempted = resolve;
    });
    this.#timer = setInterval(() => this.#readEverything(), this.#rereadMs);
    this.#timer.unref();
    try {
      await this.#bounded(this.#listen());
    } catch (error) {
      // The listener keeps trying. Once it succeeds, it calls `onListening`, which reads everything.
      this.#report(error);
    }
    if (!this.#loaded && this.#loop === null) this.#readEverything();
    await attempted;
  }

  /** Ends the readings and the subscription. The snapshot can still be read. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    clearInterval(this.#timer);
    this.#announcements.stop();
    this.#attempted();
    await this.#loop;
    this.#unlisten();
  }

  #changed(id: string): void {
    for (const listener of this.#listeners) listener(id);
  }

  async #listen(): Promise<void> {
    this.#unlisten = await this.#sql.listen({
      channel: CHANNEL,
      onMessage: (id) => this.#read(id),
      onListening: () => {
        this.#readEverything();
        this.#also?.onListening();
      },
      ...(this.#also === undefined ? {} : { also: this.#also }),
    });
  }

  #read(id: string): void {
    // The payload is checked, because anybody with a login to the database can send messages on a channel.
    if (!isUuid(id)) return;
    if (this.#waitingIds.size < MAX_WAITING_IDS) this.#waitingIds.add(id);
    else this.#everythingWaits = true;
    this.#wake();
  }

  #readEverything(): void {
    this.#everythingWaits = true;
    this.#wake();
  }

  #wake(): void {
    if (this.#loop === null && !this.#stopping.signal.aborted) this.#loop = this.#readWhatWaits();
  }

  async #readWhatWaits(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted && (this.#everythingWaits || this.#waitingIds.size > 0)) {
      try {
        if (this.#everythingWaits) await this.#comparison();
        else await this.#readingOfIds();
        this.#recovered();
      } catch (error) {
        if (signal.aborted) break;
        this.#report(error);
        this.#attempted();
        await pause(this.#retryMs, undefined, { signal, ref: false }).catch(() => {});
      }
    }
    // There must be no await between the loop's last check of what waits and this line: a `#wake` between them would be lost.
    this.#loop = null;
  }

  async #comparison(): Promise<void> {
    this.#everythingWaits = false;
    try {
      const { sums, nowMs } = await this.#bounded(selectBucketSums(this.#sql));
      this.#announcements.setTime(nowMs);
      const differing = this.#snapshot.differing(sums);
      if (differing.length > 0) await this.#readPages(differing.length > MAX_BUCKETS_READ ? null : differing);
    } catch (error) {
      this.#everythingWaits = true;
      throw error;
    }
    this.#loaded = true;
    this.#attempted();
  }

  async #readPages(buckets: readonly number[] | null): Promise<void> {
    const reading = this.#snapshot.beginReading(buckets);
    let after: string | null = null;
    do {
      const listings: Listing[] = await this.#bounded(selectCatalogPage(this.#sql, buckets, after, PAGE_SIZE));
      await reading.page(listings.map((listing) => this.#announcements.watched(listing)));
      after = listings.length < PAGE_SIZE ? null : (listings.at(-1)?.id ?? null);
    } while (after !== null);
    await reading.finish();
  }

  async #readingOfIds(): Promise<void> {
    const ids = [...this.#waitingIds].slice(0, PAGE_SIZE);
    for (const id of ids) this.#waitingIds.delete(id);
    try {
      for (const listing of await this.#bounded(selectListings(this.#sql, ids))) this.apply(listing);
    } catch (error) {
      for (const id of ids) this.#waitingIds.add(id);
      throw error;
    }
  }

  /** The outcome of `work`, or a rejection after `readTimeoutMs` or at `stop`. Whatever `work` does after that is ignored. */
  #bounded<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#stopping;
    return new Promise<T>((resolve, reject) => {
      // Not AbortSignal.any: Node 20 keeps each combined signal for as long as its oldest source lives, here until `stop`.
      const stop = (): void => finish(() => reject(new Error('the catalog was stopped')));
      const timer = setTimeout(() => {
        finish(() => reject(new Error(`Postgres did not answer within ${this.#readTimeoutMs} ms`)));
      }, this.#readTimeoutMs);
      const finish = (how: () => void): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', stop);
        how();
      };
      signal.addEventListener('abort', stop);
      if (signal.aborted) stop();
      work.then(
        (value) => finish(() => resolve(value)),
        (error) => finish(() => reject(error)),
      );
    });
  }

  #report(error: unknown): void {
    this.#failing = true;
    if (performance.now() - this.#lastLogMs < LOG_EVERY_MS) return;
    this.#lastLogMs = performance.now();
    this.#log.error({ err: error }, 'catalog: cannot read from Postgres; the last snapshot stays in use');
  }

  #recovered(): void {
    if (!this.#failing) return;
    this.#failing = false;
    this.#lastLogMs = Number.NEGATIVE_INFINITY;
    this.#log.warn({ listings: this.#snapshot.size }, 'catalog: reading from Postgres works again');
  }
}
