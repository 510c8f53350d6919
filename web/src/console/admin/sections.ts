import { lazy } from '../../lazy.tsx';
import { KEYS_SECTION } from '../keys/section.ts';
import { STATEMENT_SECTION } from '../money/section.ts';
import type { Section } from '../section.ts';
import { SESSIONS_SECTION } from '../sessions/section.ts';

export const adminSections: readonly Section[] = [
  { path: '', title: 'Overview', page: lazy(() => import('./overview.tsx')) },
  { path: 'live', title: 'Live', page: lazy(() => import('./live/live.tsx')) },
  { path: 'accounts', title: 'Accounts', page: lazy(() => import('./accounts.tsx')) },
  { path: 'services', title: 'Services', page: lazy(() => import('./services.tsx')) },
  { path: 'calls', title: 'Calls', page: lazy(() => import('./calls.tsx')) },
  { path: 'payments', title: 'Payments', page: lazy(() => import('./payments.tsx')) },
  { path: 'reconciliation', title: 'Reconciliation', page: lazy(() => import('./reconciliation.tsx')) },
  { path: 'audit', title: 'Audit', page: lazy(() => import('./audit.tsx')) },
  { path: 'instances', title: 'Instances', page: lazy(() => import('./instances.tsx')) },
  STATEMENT_SECTION,
  KEYS_SECTION,
  SESSIONS_SECTION,
];
