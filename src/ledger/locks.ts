/**
 * First numbers of Postgres' advisory locks with two numbers; the second is the shard (0 if there is none). The values are
 * arbitrary: nothing else in the database may use them.
 */

/**
 * Only the writer that has this lock works on the shard's stream. Its session keeps the lock for its whole life, so the writer's
 * connection must not go through PgBouncer in transaction mode, which shares a session among clients.
 */
export const WRITER_LOCK = 7_014_656;

/**
 * The writer takes this lock on a shard exclusively before it checks that a batch is still in the stream, and keeps it until
 * the batch is committed. A process that compares balances or copies them to Redis takes it shared. Without this lock, after
 * Redis lost everything, a wallet could be filled from Postgres just before the writer commits the charges that it had read:
 * that money could be spent twice.
 */
export const FLUSH_LOCK = 7_014_657;

/** Lets one process at a time create partitions. */
export const PARTITION_LOCK = 7_014_658;

/** Lets one process at a time drop the calls of old days. Its session keeps the lock for a round. */
export const RETENTION_LOCK = 7_014_660;

/**
 * The second number is an hour, counted since 1970. A transaction that changes rows of `key_hours` of that hour has the lock, shared;
 * the one that adds the hour to `key_days` has it alone.
 */
export const HOUR_LOCK = 7_014_662;

/**
 * Each writer holds this lock, shared, for the whole life of its session, so the number of its holders is the number of writers.
 */
export const WRITERS_LOCK = 7_014_661;
