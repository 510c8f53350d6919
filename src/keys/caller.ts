import { unauthorizedError } from '../errors.ts';

/** In ascending order of rights: each role may also do what the roles before it may. */
export const ROLES = ['buyer', 'provider', 'admin'] as const;

export type Role = (typeof ROLES)[number];

/** Whether somebody with `role` may grant or revoke what belongs to the role `other`. */
export function roleCovers(role: Role, other: Role): boolean {
  return ROLES.indexOf(role) >= ROLES.indexOf(other);
}

/** An API key as the gateway needs it on every request: what Postgres stores, without any secret in clear. */
export type KeyRecord = {
  readonly keyId: string;
  readonly accountId: string;
  readonly ownerId: string;
  readonly role: Role;
  /** SHA-256 of the secret, as `digestOf` computes it. */
  readonly secretDigest: string;
  /** Digest of the secret that the last rotation replaced, valid until `previousExpiresAtMs`; null when there is none. */
  readonly previousSecretDigest: string | null;
  readonly previousExpiresAtMs: number;
  /** What pages send instead of the secret, each valid for 15 minutes (src/sessions). Null: none. */
  readonly bearers: readonly { readonly digest: string; readonly expiresAtMs: number }[] | null;
  /** The keys above this one, root key first. Empty: the key has no parent. */
  readonly ancestors: readonly string[];
  /** The most that a call with a child key may cost: the lowest of its own and of those above it. Null: no maximum. Micro-USD. */
  readonly maxPriceMicros: number | null;
  /** The services that a child key and all keys above it may call. Null: all. */
  readonly services: ReadonlySet<string> | null;
  /**
   * The earliest expiry of a child key and the keys above it; null: never. Redis decides this, too (chains.lua), by its own clock.
   */
  readonly expiresAtMs: number | null;
  /** Requests per minute. */
  readonly rateLimit: number;
  readonly status: 'active' | 'revoked';
  readonly accountStatus: 'active' | 'suspended' | 'closed';
  /** What the operator tells a suspended account, or null. */
  readonly suspensionReason: string | null;
  /**
   * What admission has computed for calls of this key (its `Buyer`); null before the first call. Stored in the record because
   * looking it up elsewhere took 0.3 µs a call. Nothing in keys/ reads it.
   */
  buyer: object | null;
  /** The time at which the last refused caller of this key was told to retry, in the unit of gate/refill-times.ts; 0 at first. */
  lastRefill: number;
  /** Until when the key's token bucket is known to be empty, in ms of `performance.now()`; 0 at first. gate/gate.ts keeps it. */
  emptyUntilMs: number;
};

/** Whether the key has expired, by this process's clock. */
export const isExpired = ({ expiresAtMs }: KeyRecord): boolean => expiresAtMs !== null && expiresAtMs <= Date.now();

/** Who sends a request: the holder of a valid key, or anybody else, known by address only. */
export type Caller = { readonly kind: 'key'; readonly key: KeyRecord } | { readonly kind: 'ip' };

/** The caller's key, on a route that requires one. Throws `unauthorized` for a caller without a key. */
export function keyOf(caller: Caller): KeyRecord {
  if (caller.kind !== 'key') throw unauthorizedError();
  return caller.key;
}
