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
 * The fields of a root key's hash that contain this: its own limit and status, or the terms of a key below it (the header of
 * batch.lua). The root's status also says if the account is suspended.
 *
 * @returns names and values by turns
 */
export function fieldsOf(keyId: string, terms: KeyTerms, maxRateLimit: number): string[] {
  const { status, ancestors, expiresAt, budgetMicros, budgetPeriod, budgetNumber } = terms;
  const limit = String(Math.min(terms.limit, maxRateLimit));
  if (ancestors.length === 0) return ['limit', limit, 'status', status];
  const words = [limit, status === 'revoked' ? status : 'active', expiresAt?.getTime() ?? 0];
  return [keyId, [...words, budgetMicros ?? '-', budgetPeriod ?? '-', budgetNumber].join(' ')];
}
