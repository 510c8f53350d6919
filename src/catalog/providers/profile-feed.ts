import { isUuid } from '../../platform/ids.ts';
import { Job, type JobOptions } from '../../platform/job.ts';
import type { Sql } from '../../platform/postgres.ts';
import type { Profile } from './profile.ts';
import { selectProfiles, selectProfilesPage } from './profiles-sql.ts';

/** How often all are read again, for changes whose message was lost. */
const READ_MS = 300_000;
const RETRY_MS = 1_000;
const PAGE = 1_000;
/** Maximum accounts that wait to be read; beyond it, everything is read instead. */
const MAX_WAITING = 1_000;

type ProfileFeedOptions = {
  readonly sql: Sql;
  /** Applies the profiles of some accounts (null: none). `isAll`: no other account has one. */
  readonly take: (profiles: ReadonlyMap<string, Profile | null>, isAll: boolean) => Promise<void>;
  readonly log: JobOptions['log'];
};

/** Brings profiles of providers from Postgres into the catalog of a gateway. While Postgres is away, the last ones stay in use. */
export class ProfileFeed extends Job {
  readonly #options: ProfileFeedOptions;
  readonly #waiting = new Set<string>();
  #wantsAll = true;
  #readAllAt = 0;

  constructor(options: ProfileFeedOptions) {
    super({
      everyMs: READ_MS,
      retryMs: RETRY_MS,
      messages: {
        failing: 'catalog: profiles of providers cannot be read; the last ones stay in use',
        again: 'catalog: profiles of providers are read again',
      },
      log: options.log,
    });
    this.#options = options;
  }

  /** A profile has changed. The payload is checked, because anybody with a login to the database can send messages on a channel. */
  changed(accountId: string): void {
    if (!isUuid(accountId)) return;
    if (this.#waiting.size < MAX_WAITING) this.#waiting.add(accountId);
    else this.#wantsAll = true;
    this.wake();
  }

  /** Messages may have been missed. */
  mayHaveMissed(): void {
    this.#wantsAll = true;
    this.wake();
  }

  protected override async round(): Promise<void> {
    this.#wantsAll ||= performance.now() - this.#readAllAt >= READ_MS;
    const ids = [...this.#waiting];
    const wantedAll = this.#wantsAll;
    this.#waiting.clear();
    this.#wantsAll = false;
    try {
      await (wantedAll ? this.#readAll() : this.#read(ids));
    } catch (error) {
      for (const id of ids) this.#waiting.add(id);
      this.#wantsAll ||= wantedAll;
      throw error;
    }
  }

  async #read(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#options.take(await selectProfiles(this.#options.sql, ids), false);
  }

  async #readAll(): Promise<void> {
    const all = new Map<string, Profile>();
    let page: [string, Profile][];
    let after: string | null = null;
    do {
      page = await selectProfilesPage(this.#options.sql, after, PAGE);
      for (const [id, profile] of page) all.set(id, profile);
      after = page.at(-1)?.[0] ?? null;
    } while (page.length === PAGE && !this.stopping.aborted);
    if (this.stopping.aborted) return;
    await this.#options.take(all, true);
    this.#readAllAt = performance.now();
  }
}
