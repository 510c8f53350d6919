import type { Clock } from '../platform/clock.ts';
import type { KeyRecord } from './caller.ts';
import { parseBearer, splitBearer, verifyBearer, verifySecret } from './credentials.ts';
import type { KeyCache } from './key-cache.ts';

/** Turns an `Authorization` header into the record of a valid key, or of the key for which a page acts with a bearer. */
export class Authenticator {
  readonly #cache: KeyCache;
  readonly #clock: Clock;

  constructor(cache: KeyCache, clock: Clock) {
    this.#cache = cache;
    this.#clock = clock;
  }

  /**
   * The key that a header names. Null if the header is missing or malformed, the key unknown or revoked, or the secret wrong:
   * callers are never told which. A cached key with the right secret is returned at once. If Postgres must be asked, the result is
   * a promise, which rejects with `unavailable` while Postgres is away.
   *
   * Postgres is also asked when the key is cached but the secret does not match. Another gateway may just have rotated the key, and
   * its message has not arrived yet; or it may have issued a bearer, which no message announces. So a wrong secret costs Postgres
   * as much as a made-up key.
   *
   * @param mayLoad called before Postgres is asked; when it returns false, Postgres is not asked and the header counts as wrong
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
    // Postgres is asked only for credentials of the right form, checksum included.
    if (parseBearer(authorization) === null || !mayLoad()) return null;
    const read = record === undefined ? this.#cache.load(keyId) : this.#cache.reload(keyId);
    return read.then((loaded) => (loaded === null ? null : this.#verified(loaded, secret)));
  }

  /** The record of an active key for which somebody acts without its secret; null if there is none. Rejects as `identify` does. */
  async active(keyId: string): Promise<KeyRecord | null> {
    const record = await this.#cache.load(keyId);
    return record?.status === 'active' ? record : null;
  }

  #verified(record: KeyRecord, secret: string): KeyRecord | null {
    if (record.status !== 'active') return null;
    const isGood = verifySecret(record, secret, this.#clock) || verifyBearer(record, secret, this.#clock);
    return isGood ? record : null;
  }
}
