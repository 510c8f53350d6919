/**
 * Classes of two-number advisory locks; the second number is the shard. Any constants, as long as nobody else in the
 * database uses them.
 */

/**
 * Which writer works on a shard's stream: held by its session for as long as it lives. (Session locks: the writer's
 * connection must not go through PgBouncer in transaction mode.)
 */
export const WRITER_LOCK = 7_014_656;

/**
 * Held exclusively from before a batch is read from the stream until it is committed, and shared by whoever compares or
 * copies balances: in between, the money of the batch is in neither place. Without it, a wallet could be filled from
 * Postgres just after Redis lost everything and just before the writer commits what it read earlier: money spent twice.
 */
export const FLUSH_LOCK = 7_014_657;

/** Makers of partitions, one at a time. */
export const PARTITION_LOCK = 7_014_658;
