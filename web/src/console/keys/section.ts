import { lazy } from '../../lazy.tsx';
import type { Section } from '../section.ts';

/** Keys are for every role. */
export const KEYS_SECTION: Section = { path: 'keys', title: 'Keys', page: lazy(() => import('./keys.tsx')) };
