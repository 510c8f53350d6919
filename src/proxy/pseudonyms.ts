import { createHmac } from 'node:crypto';
import type { Buyer } from '../admission/buyer.ts';

/** Pseudonyms kept at once; one costs about 3 µs to make again. */
const MAX_CACHED = 100_000;

/**
 * What a provider sees of a buyer: the same on every call, different for every provider, so that providers can recognise
 * their customers but cannot put their knowledge together. Keyed by a secret of the installation.
 */
export class Pseudonyms {
  readonly #secret: string;
  /** By provider, then by buyer: joining the two ids to one key would cost a new string and its hash on every call. */
  #cache = new Map<string, Map<string, string>>();
  #size = 0;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** Remembered in the buyer for the provider it called last. */
  of(buyer: Buyer, providerId: string): string {
    if (buyer.providerId !== providerId) {
      buyer.pseudonym = this.#of(buyer.accountId, providerId);
      buyer.providerId = providerId;
    }
    return buyer.pseudonym;
  }

  /** 32 hex digits (128 bits) of HMAC-SHA-256 over buyer and provider. */
  #of(accountId: string, providerId: string): string {
    const cached = this.#cache.get(providerId)?.get(accountId);
    if (cached !== undefined) return cached;
    const pseudonym = createHmac('sha256', this.#secret)
      .update(`${accountId}:${providerId}`)
      .digest()
      // A part of a longer text would keep all of it.
      .toString('hex', 0, 16);
    this.#keep(accountId, providerId, pseudonym);
    return pseudonym;
  }

  #keep(accountId: string, providerId: string, pseudonym: string): void {
    if (this.#size++ >= MAX_CACHED) {
      this.#cache = new Map();
      this.#size = 1;
    }
    let ofProvider = this.#cache.get(providerId);
    if (ofProvider === undefined) {
      ofProvider = new Map();
      this.#cache.set(providerId, ofProvider);
    }
    ofProvider.set(accountId, pseudonym);
  }
}
