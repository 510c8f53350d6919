/**
 * The platform's own account: its `cash` ledger is the other side of every credit, its `fees` ledger holds its share of
 * every charge. It has no row in `accounts` and no keys: nobody can act for it.
 */
export const PLATFORM_ACCOUNT_ID = '00000000-0000-7000-8000-000000000001';
