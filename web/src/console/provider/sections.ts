import { KEYS_SECTION } from '../keys/section.ts';
import { STATEMENT_SECTION } from '../money/section.ts';
import { type Section, section } from '../section.tsx';
import { SESSIONS_SECTION } from '../sessions/section.ts';

export const providerSections: readonly Section[] = [
  section('', 'Overview', 'figures', () => import('./overview.tsx')),
  section('services', 'Services', 'list', () => import('./services.tsx')),
  { ...section('calls', 'Call', 'card', () => import('./call-page.tsx')), isHidden: true, marks: 'services' },
  section('profile', 'Profile', 'card', () => import('./profile.tsx')),
  section('earnings', 'Earnings', 'figures', () => import('./earnings.tsx')),
  STATEMENT_SECTION,
  KEYS_SECTION,
  SESSIONS_SECTION,
];
