import { lazy } from '../../lazy.tsx';
import { KEYS_SECTION } from '../keys/section.ts';
import { STATEMENT_SECTION } from '../money/section.ts';
import type { Section } from '../section.ts';
import { SESSIONS_SECTION } from '../sessions/section.ts';

export const providerSections: readonly Section[] = [
  { path: '', title: 'Overview', page: lazy(() => import('./overview.tsx')) },
  { path: 'services', title: 'Services', page: lazy(() => import('./services.tsx')) },
  { path: 'calls', title: 'Call', isHidden: true, page: lazy(() => import('./call-page.tsx')) },
  { path: 'profile', title: 'Profile', page: lazy(() => import('./profile.tsx')) },
  { path: 'earnings', title: 'Earnings', page: lazy(() => import('./earnings.tsx')) },
  STATEMENT_SECTION,
  KEYS_SECTION,
  SESSIONS_SECTION,
];
