/** Why a process must not start, or cannot: something that an operator can mend. It is printed without a stack. */
export class StartRefused extends Error {}
