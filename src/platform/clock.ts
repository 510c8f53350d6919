/** Milliseconds since the epoch. Handed to whatever needs the time, so that tests can stand still. */
export type Clock = () => number;

export const systemClock: Clock = () => Date.now();
