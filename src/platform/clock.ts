/** Milliseconds since the epoch. Passed to all code that needs the time, so that tests can make time stand still. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
