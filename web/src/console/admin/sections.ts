import { KEYS_SECTION } from '../keys/section.ts';
import { STATEMENT_SECTION } from '../money/section.ts';
import { type Section, section } from '../section.tsx';
import { SESSIONS_SECTION } from '../sessions/section.ts';

export const adminSections: readonly Section[] = [
  section('', 'Overview', 'figures', () => import('./overview.tsx')),
  section('live', 'Live', 'figures', () => import('./live/live.tsx')),
  section('accounts', 'Accounts', 'list', () => import('./accounts.tsx')),
  section('services', 'Services', 'list', () => import('./services.tsx')),
  section('calls', 'Calls', 'list', () => import('./calls.tsx')),
  section('payments', 'Payments', 'list', () => import('./payments.tsx')),
  section('reconciliation', 'Reconciliation', 'figures', () => import('./reconciliation.tsx')),
  section('audit', 'Audit', 'list', () => import('./audit.tsx')),
  section('instances', 'Instances', 'list', () => import('./instances.tsx')),
  STATEMENT_SECTION,
  KEYS_SECTION,
  SESSIONS_SECTION,
];
