import { type Section, section } from '../section.tsx';

/** The statement for providers. Buyers have it on their money page. */
export const STATEMENT_SECTION: Section = section('statement', 'Statement', 'list', () => import('./money.tsx'));
