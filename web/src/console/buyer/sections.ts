import { lazy } from '../../lazy.tsx';
import { KEYS_SECTION } from '../keys/section.ts';
import type { Section } from '../section.ts';
import { SESSIONS_SECTION } from '../sessions/section.ts';

export const buyerSections: readonly Section[] = [
  { path: '', title: 'Overview', page: lazy(() => import('./overview.tsx')) },
  { path: 'calls', title: 'Calls', page: lazy(() => import('./calls.tsx')) },
  { path: 'money', title: 'Money', page: lazy(() => import('../money/money.tsx')) },
  KEYS_SECTION,
  SESSIONS_SECTION,
];
