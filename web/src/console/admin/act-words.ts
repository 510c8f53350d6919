<<<<<<< HEAD
/** The acts in words, by their names in src/routes/admin/audit.ts. */
=======
/** What was done, in words, by the action's name in src/routes/admin/audit.ts. */
>>>>>>> main
export const ACT_WORDS: Readonly<Record<string, string>> = {
  'account.create': 'Account opened',
  'account.credit': 'Money added',
  'account.debit': 'Money taken',
  'account.payout': 'Paid out',
  'account.correct': 'Drift corrected',
  'account.suspend': 'Account suspended',
  'account.resume': 'Account resumed',
  'account.clear_profile': 'Profile cleared',
  'account.close': 'Account closed',
  'call.refund': 'Call refunded',
  'key.create': 'Key created',
  'key.rotate': 'Key rotated',
  'key.change': 'Key changed',
  'key.revoke': 'Key revoked',
  'key.sign_in': 'Admin signed in',
  'service.change': 'Service changed',
  'service.remove': 'Service removed',
  'reconciliation.run': 'Money compared',
  'reconciliation.accept_postgres': 'Older Postgres accepted',
};
