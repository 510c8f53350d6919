import { type Section, section } from '../section.tsx';

/** Linked beside the name of the signed-in account, for every role. */
export const SESSIONS_SECTION: Section = {
  ...section('sessions', 'Sessions', 'list', () => import('./sessions.tsx')),
  isHidden: true,
};
