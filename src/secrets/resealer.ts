import { selectListingsWithSecrets, updateListing } from '../catalog/sql.ts';
import { Job, type JobOptions } from '../platform/job.ts';
import type { Sql } from '../platform/postgres.ts';
import type { SecretCounts, ServiceSecrets } from './service-secrets.ts';

type ResealerLog = JobOptions['log'] & { error(fields: object, message: string): void };

/**
 * Listings per query. Nothing else runs on the event loop during a page, and decrypting the secrets of one listing takes up to 0.2
 * ms.
 */
const PAGE_SIZE = 20;
/**
 * A gateway with older settings may have encrypted something with an older key since the last run. Signing keys also end in the
 * meantime.
 */
const EVERY_MS = 3_600_000;
const RETRY_MS = 30_000;

/**
 * Encrypts the secrets of all listings with the first key of SECRETS_KEY, at start and every hour, and counts those encrypted
 * otherwise. An operator may retire a key once all secrets are encrypted with the first key. The first run does not delay the
 * start: calls can read secrets of every key in the list.
 *
 * Any number of gateways may do this at the same time: each write succeeds only for the version that was read.
 *
 * Tested by test/secrets/resealer.test.ts.
 */
export class Resealer extends Job {
  readonly #sql: Sql;
  readonly #secrets: ServiceSecrets;
  readonly #log: ResealerLog;
  /** As of the last complete run. Null before the first: zeros would say that a key may be retired. */
  counts: SecretCounts | null = null;

  constructor({ sql, secrets, log }: { sql: Sql; secrets: ServiceSecrets; log: ResealerLog }) {
    super({
      everyMs: EVERY_MS,
      retryMs: RETRY_MS,
      messages: {
        failing: 'the secrets of listings could not be checked; trying again',
        again: 'the secrets of listings could be checked again',
      },
      log,
    });
    this.#sql = sql;
    this.#secrets = secrets;
    this.#log = log;
  }

  protected override round(): Promise<void> {
    return this.run();
  }

  /** One run over all listings. Ends early when it is stopped. */
  async run(): Promise<void> {
    const counts = { first: 0, other: 0, unreadable: 0 };
    let after: string | null = null;
    do {
      const page = await selectListingsWithSecrets(this.#sql, after, PAGE_SIZE);
      for (const listing of page) {
        if (this.stopping.aborted) return;
        const renewed = this.#secrets.renewed(listing, Date.now());
        const isChanged =
          renewed.upstreamHeaders !== listing.upstreamHeaders ||
          renewed.upstreamQuery !== listing.upstreamQuery ||
          renewed.signingKeys !== listing.signingKeys;
        const written = isChanged
          ? await updateListing(this.#sql, listing.id, renewed, 'any', { version: listing.updatedAtMicros })
          : listing;
        // Null: somebody has changed the listing since it was read. It is counted as it was read.
        const { first, other, unreadable } = this.#secrets.count(written ?? listing);
        counts.first += first;
        counts.other += other;
        counts.unreadable += unreadable;
      }
      after = page.length < PAGE_SIZE ? null : (page.at(-1)?.id ?? null);
    } while (after !== null);
    this.counts = counts;
    this.#report(counts);
  }

  #report({ first, other, unreadable }: SecretCounts): void {
    if (first + other + unreadable === 0) return;
    this.#log.info(
      { first_key: first, other_keys: other, unreadable },
      other === 0
        ? 'no secret of a listing needs a key of SECRETS_KEY other than the first'
        : 'some secrets of listings still need a key of SECRETS_KEY other than the first: keep it',
    );
    if (unreadable > 0) {
      const message = 'secrets of listings cannot be decrypted with SECRETS_KEY: calls of these listings are refused';
      this.#log.error({ unreadable }, message);
    }
  }
}
