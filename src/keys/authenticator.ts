import type { Clock } from '../platform/clock.ts';
import type { KeyRecord } from './caller.ts';
import { parseBearer, splitBearer, verifySecret } from './credentials.ts';
import type { KeyCache } from './key-cache.ts';

/** Turns an `Authorization` header into the record of a valid key. */
export class Authenticator {
  readonly #cache: KeyCache;
  readonly #clock: Clock;

  constructor(cache: KeyCache, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
  }

  /**
   * The key behind a header, or null when there is none, it is malformed, unknown, revoked, or its secret is wrong: callers
   * are never told which. A known key is answered at once; only an unknown one costs a promise (and rejects with
   * `unavailable` while Postgres is away).
   *
   * A secret that a known key does not have is looked up as well: another gateway may have rotated the key just now, and the
   * message has not come yet. That costs Postgres what a made-up key costs it.
   *
   * @param mayLoad  asked before Postgres is; false: an unknown key counts as none
   */
  identify(authorization: string | undefined, mayLoad: () => boolean): KeyRecord | null | Promise<KeyRecord | null> {
    if (authorization === undefined) return null;
    const credentials = splitBearer(authorization);
    if (credentials === null) return null;
    const { keyId, secret } = credentials;
    const record = this.#cache.get(keyId);
    if (record !== undefined) {
      const verified = this.#verified(record, secret);
      if (verified !== null || record.status !== 'active') return verified;
    }
    // Postgres is asked only for what has the right form, checksum included.
    if (parseBearer(authorization) === null || !mayLoad()) return null;
    const read = record === undefined ? this.#cache.load(keyId) : this.#cache.reload(keyId);
    return read.then((loaded) => (loaded === null ? null : this.#verified(loaded, secret)));
  }

  #verified(record: KeyRecord, secret: string): KeyRecord | null {
    // Reading the clock takes 0.1 µs, and only a key that was rotated needs it.
    const nowMs = record.previousSecretDigest === null ? 0 : this.#clock();
    return record.status === 'active' && verifySecret(record, secret, nowMs) ? record : null;
  }
}
