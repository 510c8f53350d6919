import type { ComponentType } from 'preact';

/** One page of the console. Its address is `/console/{path}`; what follows that path and the query belong to the page itself. */
export type Section = {
  /** `calls`; '' is the first page of a role. */
  readonly path: string;
  /** One or two words in the navigation. */
  readonly title: string;
  readonly page: ComponentType;
  /** Not in the navigation: other pages lead to it. */
  readonly isHidden?: true;
};
