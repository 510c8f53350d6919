import { createHmac } from 'node:crypto';
import type { Buyer } from '../admission/buyer.ts';

/** Maximum number of pseudonyms kept. Beyond it all are dropped, and made again when they are needed, in about 3 µs each. */
const MAX_CACHED = 100_000;

/**
 * The name under which a provider knows a buyer. It is the same on every call, so a provider can recognise its customers. It
 * differs between providers, so two providers cannot find out that they have the same customer. The hash is keyed with a secret
 * of the installation.
 */
export class Pseudonyms {
  readonly #secret: string;
  /** By provider, then by buyer. A single map would need both ids joined: every call would build and hash a new string. */
  #cache = new Map<string, Map<string, string>>();
  #size = 0;

  constructor(secret: string) {
    this.#secret = secret;
  }

  /** The buyer object remembers the pseudonym for the provider it called last, so that most calls need no look-up. */
  of(buyer: Buyer, providerId: string): string {
    if (buyer.providerId !== providerId) {
      buyer.pseudonym = this.ofAccount(buyer.accountId, providerId);
      buyer.providerId = providerId;
    }
    return buyer.pseudonym;
  }

  /** 32 hex digits (128 bits) of HMAC-SHA-256 over buyer and provider. */
  ofAccount(accountId: string, providerId: string): string {
    const cached = this.#cache.get(providerId)?.get(accountId);
    if (cached !== undefined) return cached;
    const pseudonym = createHmac('sha256', this.#secret)
      .update(`${accountId}:${providerId}`)
      .digest()
      // Converts only 16 bytes: a slice of the whole hex text would keep all of that text in memory.
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
