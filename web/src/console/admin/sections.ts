import { lazy } from 'preact-iso';
import type { Section } from '../sections.ts';

export const adminSections: readonly Section[] = [
  { path: '', title: 'Overview', page: lazy(() => import('./overview.tsx')) },
];
