// @ts-check
// Numbers that both the program and its scripts need. This is plain JavaScript without imports, because `npm start` reads it in a
// fresh clone, before anything is installed or built.
/** The lowest major version of Redis that is accepted. Valkey passes too: in INFO it says that it is Redis 7.2. */
export const MINIMUM_REDIS_MAJOR = 7;
/** Default of the setting DRAIN_SECONDS. */
export const DRAIN_SECONDS = 20;
//# sourceMappingURL=shared.mjs.map