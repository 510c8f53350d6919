import { unauthorizedError } from '../errors.ts';

/** From the least to the most: whoever may act in one role may also in those before it. */
export const ROLES = ['buyer', 'provider', 'admin'] as const;

export type Role = (typeof ROLES)[number];

/** Whether someone with the role may hand out, or take away, what belongs to the other role. */
export function roleCovers(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(other);
}

/** An API key as the gateway needs it on every request: what Postgres says about it, without any secret in clear. */
export type KeyRecord = {
  readonly keyId: string;
  readonly accountId: string;
  readonly ownerId: string;
  readonly role: Role;
  /** SHA-256 of the secret as `digestOf` makes it. */
  readonly secretDigest: string;
  /** The secret before the last rotation, good until `previousExpiresAtMs`; null when there is none. */
  readonly previousSecretDigest: string | null;
  readonly previousExpiresAtMs: number;
  /** Requests per minute. */
  readonly rateLimit: number;
  readonly status: 'active' | 'revoked';
  readonly accountStatus: 'active' | 'suspended';
  /**
   * What calls of this key have worked out (admission's `Buyer`), or null before the first. It is kept in the record because to
   * look it up elsewhere took 0.3 µs a call. Nothing in keys/ reads it.
   */
  buyer: object | null;
  /** Of the callers of this key that were refused together: the place promised last (gate/refill-places.ts). */
  lastPlace: number;
};

/** Who sends a request: the holder of a valid key, or anybody from some address. */
export type Caller = { readonly kind: 'key'; readonly key: KeyRecord } | { readonly kind: 'ip' };

/** The key of a caller on a route that asks for one. Throws `unauthorized` for anybody else. */
export function keyOf(caller: Caller): KeyRecord {
  if (caller.kind !== 'key') throw unauthorizedError();
  return caller.key;
}
