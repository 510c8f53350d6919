/**
 * Classes of Postgres advisory locks with two numbers; the second number is the shard. The constants are arbitrary: nothing
 * else in the database may use them.
 */

/**
 * Says which writer works on a shard's stream. The writer's session keeps the lock for its whole life. (Session locks: the
 * writer's connection must not go through PgBouncer in transaction mode.)
 */
export const WRITER_LOCK = 7_014_656;

/**
 * The writer locks a shard exclusively before it checks that a batch is still in the stream, and until that batch is
 * committed. Whoever compares or copies balances takes the lock shared. Without it, a wallet could be filled from Postgres
 * just after Redis lost everything and just before the writer commits what it had read: that money could be spent twice.
 */
export const FLUSH_LOCK = 7_014_657;

/** Lets one process at a time create partitions. */
export const PARTITION_LOCK = 7_014_658;
