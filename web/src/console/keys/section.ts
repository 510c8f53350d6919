import { lazy } from '../../lazy.tsx';
import type { Section } from '../sections.ts';

/** Keys are for every role. */
export const KEYS_SECTION: Section = { path: 'keys', title: 'Keys', page: lazy(() => import('./keys.tsx')) };
