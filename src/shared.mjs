// @ts-check
// Numbers that the program and the scripts around it both need. Plain JavaScript without imports: `npm start` reads it in
// a bare clone, before anything is installed or built.

/** The first major version of Redis that is good enough. Valkey began as Redis 7.2 and calls itself that in INFO. */
export const MINIMUM_REDIS_MAJOR = 7;

/** Default of DRAIN_SECONDS. */
export const DRAIN_SECONDS = 20;
