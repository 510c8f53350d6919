import type { ComponentType } from 'preact';
import type { Shape } from '../design/index.ts';
import { type Lazy, lazy } from '../lazy.tsx';
import { SectionWaiting } from './waiting.tsx';

/** One page of the console. Its address is `/console/{path}`; what follows that path and the query belong to the page itself. */
export type Section = {
  /** `calls`; '' is the first page of a role. */
  readonly path: string;
  /** One or two words in the navigation. */
  readonly title: string;
  readonly page: Lazy<object>;
  /** Not in the navigation: other pages lead to it. */
  readonly isHidden?: true;
};

/** @param shape  what is drawn of the page until its file is there */
export const section = (
  path: string,
  title: string,
  shape: Shape,
  load: () => Promise<{ readonly default: ComponentType }>,
): Section => ({ path, title, page: lazy(load, () => <SectionWaiting title={title} shape={shape} />) });
