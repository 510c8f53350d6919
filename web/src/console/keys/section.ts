import { type Section, section } from '../section.tsx';

/** Keys are for every role. */
export const KEYS_SECTION: Section = section('keys', 'Keys', 'list', () => import('./keys.tsx'));
