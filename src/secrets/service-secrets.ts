import { randomBytes } from 'node:crypto';
import { originOf, type StoredSigningKey, storedPairs, storedSigningKeys, textOf } from '../catalog/listing-secrets.ts';
import type { Sealer } from './sealer.ts';

/** How long calls are also signed with the previous signing secret after a new one was made. */
export const OVERLAP_MS = 86_400_000;

type Pair = readonly [name: string, value: string];

type Stored = {
  readonly id: string;
  readonly endpoint: string;
  readonly upstreamHeaders: string | null;
  readonly upstreamQuery: string | null;
  readonly signingKeys: string | null;
};

export type SigningKey = {
  readonly keyid: string;
  readonly secret: string;
  /** When it stops signing, in milliseconds since the epoch; Infinity for the present key. */
  readonly untilMs: number;
};

/** The secrets of a listing that could be decrypted. */
export type OpenedSecrets = {
  readonly headers: readonly Pair[];
  readonly query: readonly Pair[];
  readonly signingKeys: readonly SigningKey[];
  /** What could not be decrypted: names of headers and parameters, and keyids. */
  readonly unreadable: readonly string[];
};

export type SecretCounts = { readonly first: number; readonly other: number; readonly unreadable: number };

/** What the gateway adds to calls: headers, or parameters of the query. */
type Kind = 'header' | 'query';

/** Such a secret is for the server at the listing's endpoint: it cannot be decrypted if the row is made to point elsewhere. */
const contextOf = (kind: Kind, { id, endpoint }: Pick<Stored, 'id' | 'endpoint'>, name: string): string =>
  `${kind} ${id} ${originOf(endpoint)} ${name}`;
const contextOfKey = (id: string, keyid: string): string => `signing ${id} ${keyid}`;

/**
 * The secrets of listings: headers and parameters that the gateway adds to their calls, and keys that sign them. Each secret is
 * sealed for its listing and its name; those that are added to calls are also sealed for the origin of the endpoint.
 *
 * Tested by test/secrets/service-secrets.test.ts.
 */
export class ServiceSecrets {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  /** Whether there is a key: without one, no listing can get secrets. */
  get canSeal(): boolean {
    return this.#sealer.canSeal;
  }

  /** @returns `Listing.upstreamHeaders`, or `upstreamQuery` */
  seal(kind: Kind, listing: Pick<Stored, 'id' | 'endpoint'>, pairs: readonly Pair[]): string | null {
    return textOf(
      pairs.map(([name, value]) => [name, this.#sealer.seal(value, contextOf(kind, listing, name))] as const),
    );
  }

  /**
   * Makes a new signing key. The present one signs for another day; an earlier one ends now. A present one that cannot be decrypted
   * also ends now: it signs nothing, and all calls would be refused as long as it is there.
   *
   * @param before  the listing's `signingKeys`
   * @returns the new key, shown to the provider once, and the listing's new `signingKeys`
   */
  newSigningKey(
    id: string,
    before: string | null,
    nowMs: number,
  ): { readonly key: Pick<SigningKey, 'keyid' | 'secret'>; readonly stored: string | null } {
    const key = {
      keyid: `sgk_${randomBytes(12).toString('base64url')}`,
      secret: `sgs_${randomBytes(32).toString('base64url')}`,
    };
    const sealed = { keyid: key.keyid, secret: this.#sealer.seal(key.secret, contextOfKey(id, key.keyid)) };
    const previous = storedSigningKeys(before)
      .slice(0, 1)
      .filter(({ keyid, secret }) => this.#sealer.open(secret, contextOfKey(id, keyid)) !== null)
      .map((present) => ({ ...present, until: nowMs + OVERLAP_MS }));
    return { key, stored: textOf([sealed, ...previous]) };
  }

  open(listing: Stored): OpenedSecrets {
    const { id, upstreamHeaders, upstreamQuery, signingKeys } = listing;
    const keys: SigningKey[] = [];
    const unreadable: string[] = [];
    const opened = (kind: Kind, text: string | null): Pair[] => {
      const pairs: Pair[] = [];
      for (const [name, sealed] of storedPairs(text)) {
        const value = this.#sealer.open(sealed, contextOf(kind, listing, name));
        if (value === null) unreadable.push(name);
        else pairs.push([name, value]);
      }
      return pairs;
    };
    const headers = opened('header', upstreamHeaders);
    const query = opened('query', upstreamQuery);
    for (const { keyid, secret: sealed, until } of storedSigningKeys(signingKeys)) {
      const secret = this.#sealer.open(sealed, contextOfKey(id, keyid));
      if (secret === null) unreadable.push(keyid);
      else keys.push({ keyid, secret, untilMs: until ?? Number.POSITIVE_INFINITY });
    }
    return { headers, query, signingKeys: keys, unreadable };
  }

  /**
   * The listing's secrets as they should be stored: sealed with the first key, and without signing keys whose overlap has ended.
   * Those that cannot be decrypted are left unchanged, because their key may come back.
   */
  renewed(listing: Stored, nowMs: number): Pick<Stored, 'upstreamHeaders' | 'upstreamQuery' | 'signingKeys'> {
    const { id, upstreamHeaders, upstreamQuery, signingKeys } = listing;
    const pairs = (kind: Kind, text: string | null): string | null =>
      textOf(
        storedPairs(text).map(
          ([name, sealed]) => [name, this.#renewed(sealed, contextOf(kind, listing, name))] as const,
        ),
      );
    const keys = storedSigningKeys(signingKeys)
      .filter(({ until = Number.POSITIVE_INFINITY }) => until > nowMs)
      .map((key): StoredSigningKey => ({ ...key, secret: this.#renewed(key.secret, contextOfKey(id, key.keyid)) }));
    return {
      upstreamHeaders: pairs('header', upstreamHeaders),
      upstreamQuery: pairs('query', upstreamQuery),
      signingKeys: textOf(keys),
    };
  }

  /** How many of the listing's secrets are sealed with the first key, how many with another, and how many cannot be decrypted. */
  count(listing: Stored): SecretCounts {
    const { id, upstreamHeaders, upstreamQuery, signingKeys } = listing;
    const counts = { first: 0, other: 0, unreadable: 0 };
    const add = (sealed: string, context: string): void => {
      if (this.#sealer.open(sealed, context) === null) counts.unreadable++;
      else if (this.#sealer.isCurrent(sealed)) counts.first++;
      else counts.other++;
    };
    for (const [name, sealed] of storedPairs(upstreamHeaders)) add(sealed, contextOf('header', listing, name));
    for (const [name, sealed] of storedPairs(upstreamQuery)) add(sealed, contextOf('query', listing, name));
    for (const { keyid, secret } of storedSigningKeys(signingKeys)) add(secret, contextOfKey(id, keyid));
    return counts;
  }

  #renewed(sealed: string, context: string): string {
    if (this.#sealer.isCurrent(sealed)) return sealed;
    const text = this.#sealer.open(sealed, context);
    return text === null ? sealed : this.#sealer.seal(text, context);
  }
}
