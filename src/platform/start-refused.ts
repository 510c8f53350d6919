/** Why a process must not or cannot start: something that an operator can fix. It is printed without a stack. */
export class StartRefused extends Error {}

/** The refusal of a store whose formats are not those of this build. Formats are promised from 0.1.0 on (CONTRIBUTING.md). */
export const madeBefore = (store: string): string =>
  `${store} was made before 0.1.0: start with an empty store (\`npm start\`: delete .data)`;
