import { type Section, section } from '../section.tsx';

/** The statement of those who earn. Buyers have it on their page about money. */
export const STATEMENT_SECTION: Section = section('statement', 'Statement', 'list', () => import('./money.tsx'));
