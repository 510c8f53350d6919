import type { ComponentType } from 'preact';
import type { Shape } from '../design/index.ts';
import { type Lazy, lazy } from '../lazy.tsx';
import { SectionWaiting } from './waiting.tsx';

/** One page of the console. Its address is `/console/{path}`; the rest of the path and the query belong to the page itself. */
export type Section = {
  /** `calls`; '' is the first page of a role. */
  readonly path: string;
  /** One or two words in the navigation. */
  readonly title: string;
  readonly page: Lazy<object>;
  /** Not in the navigation, because other pages link to it. */
  readonly isHidden?: true;
  /** The path of the section that the navigation marks instead. */
  readonly marks?: string;
};

/** @param shape the placeholder until the file of the page has loaded */
export const section = (
  path: string,
  title: string,
  shape: Shape,
  load: () => Promise<{ readonly default: ComponentType }>,
): Section => ({ path, title, page: lazy(load, () => <SectionWaiting title={title} shape={shape} />) });
