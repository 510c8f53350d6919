import { lazy } from '../../lazy.tsx';
import type { Section } from '../section.ts';

/** Beside the name of who is signed in, for every role. */
export const SESSIONS_SECTION: Section = {
  path: 'sessions',
  title: 'Sessions',
  isHidden: true,
  page: lazy(() => import('./sessions.tsx')),
};
