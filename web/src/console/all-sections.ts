import { adminSections } from './admin/sections.ts';
import { buyerSections } from './buyer/sections.ts';
import { providerSections } from './provider/sections.ts';
import type { Section } from './section.tsx';

/** The sections of the console for each role, in the order of the navigation. */
export const SECTIONS: Readonly<Record<'buyer' | 'provider' | 'admin', readonly Section[]>> = {
  buyer: buyerSections,
  provider: providerSections,
  admin: adminSections,
};

/** The section of an address: the one with the longest matching path. */
export function sectionOf(sections: readonly Section[], path: string): Section | null {
  const rest = path.replace(/^\/console\/?/, '').replace(/\/$/, '');
  const fitting = sections.filter(
    // One that marks another has only the pages of single things.
    ({ path: its, marks }) => (rest === its && marks === undefined) || (its !== '' && rest.startsWith(`${its}/`)),
  );
  return fitting.sort((a, b) => b.path.length - a.path.length)[0] ?? null;
}
