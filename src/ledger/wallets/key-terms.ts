/** What Redis must know about an API key to decide its requests, as stored in Postgres. */
export type KeyTerms = {
  /** Requests per minute. As stored, it may be above MAX_RATE_LIMIT. */
  readonly limit: number;
  readonly status: 'active' | 'suspended' | 'revoked';
  /** The keys above it, root first. */
  readonly ancestors: readonly string[];
  readonly expiresAt: Date | null;
  readonly budgetMicros: number | null;
  readonly budgetPeriod: string | null;
  readonly budgetNumber: number;
};

/**
 * The status in the terms of a child key. Suspending an account bars its root keys, and these bar the keys below them. A status
 * that is missing here came from a newer version: it is written as it is, so that batch.lua refuses the key (STATUS_UNKNOWN).
 */
const STATUS_OF_CHILD: { readonly [status in KeyTerms['status']]: 'active' | 'revoked' } = {
  active: 'active',
  suspended: 'active',
  revoked: 'revoked',
};

/**
 * The fields of a root key's hash that contain a key's terms (the header of batch.lua): limit and status of the root itself, or one
 * field for a key below it. The root's status also says whether the account is suspended.
 *
 * @returns names and values in turn
 */
export function fieldsOf(keyId: string, terms: KeyTerms, maxRateLimit: number): string[] {
  const { status, ancestors, expiresAt, budgetMicros, budgetPeriod, budgetNumber } = terms;
  const limit = String(Math.min(terms.limit, maxRateLimit));
  if (ancestors.length === 0) return ['limit', limit, 'status', status];
  const words = [limit, STATUS_OF_CHILD[status] ?? status, expiresAt?.getTime() ?? 0];
  return [keyId, [...words, budgetMicros ?? '-', budgetPeriod ?? '-', budgetNumber].join(' ')];
}
