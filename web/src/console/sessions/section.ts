import { type Section, section } from '../section.tsx';

/** Beside the name of who is signed in, for every role. */
export const SESSIONS_SECTION: Section = {
  ...section('sessions', 'Sessions', 'list', () => import('./sessions.tsx')),
  isHidden: true,
};
