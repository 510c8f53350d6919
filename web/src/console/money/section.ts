import { lazy } from '../../lazy.tsx';
import type { Section } from '../section.ts';

/** The statement of those who earn. Buyers have it on their page about money. */
export const STATEMENT_SECTION: Section = {
  path: 'statement',
  title: 'Statement',
  page: lazy(() => import('./money.tsx')),
};
