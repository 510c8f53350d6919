import { expect, it } from 'vitest';
import { fieldsOf, type KeyTerms } from '../../../src/ledger/wallets/key-terms.ts';

const terms = (status: string, ancestors: readonly string[]): KeyTerms => ({
  limit: 60,
  status: status as KeyTerms['status'],
  ancestors,
  expiresAt: null,
  budgetMicros: null,
  budgetPeriod: null,
  budgetNumber: 0,
});

it.each([
  ['active', 'active'],
  // The root's status bars them.
  ['suspended', 'active'],
  ['revoked', 'revoked'],
  // batch.lua refuses a key whose status it does not know.
  ['of_a_newer_version', 'of_a_newer_version'],
])('a child key with status %s is %s in the hash of its root', (status, written) => {
  expect(fieldsOf('acf_child', terms(status, ['acf_root']), 1_000)).toEqual(['acf_child', `60 ${written} 0 - - 0`]);
  expect(fieldsOf('acf_root', terms(status, []), 1_000)).toEqual(['limit', '60', 'status', status]);
});
