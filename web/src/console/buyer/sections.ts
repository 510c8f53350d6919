import { KEYS_SECTION } from '../keys/section.ts';
import { type Section, section } from '../section.tsx';
import { SESSIONS_SECTION } from '../sessions/section.ts';

export const buyerSections: readonly Section[] = [
  section('', 'Overview', 'figures', () => import('./overview.tsx')),
  section('calls', 'Calls', 'list', () => import('./calls.tsx')),
  section('money', 'Money', 'figures', () => import('../money/money.tsx')),
  KEYS_SECTION,
  SESSIONS_SECTION,
];
