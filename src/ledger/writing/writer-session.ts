import type { Clock } from '../../platform/clock.ts';
import { PostgresSession } from '../../platform/postgres.ts';
import type { Layout } from '../layout.ts';
import { OwnedShards } from './owned-shards.ts';
import { makePartitions } from './partitions.ts';

const PARTITIONS_MS = 3_600_000;
const PARTITIONS_RETRY_MS = 60_000;
const QUERY_TIMEOUT_MS = 20_000;
/**
 * How long the writer leaves out a shard of a cluster after its node has failed. The other shards must not wait for its timeouts.
 */
const LEFT_OUT_MS = 2_000;

const SETTINGS = {
  lock_timeout: 5_000,
  // The session keeps its query plans for its whole life. A plan made while `entries` is small would scan the whole table, and
  // would still do so once the table is large.
  enable_seqscan: 'off',
  // A writer process that is suspended in the middle of a flush keeps flush locks: it must not block the loading of wallets.
  idle_in_transaction_session_timeout: 5_000,
  // A suspended writer must not keep its shards between two flushes: other writers must get them. A working writer asks Postgres at
  // least every 6 s (`BLOCK_MS` and `REPLY_MS` of event-wait.ts).
  idle_session_timeout: 8_000,
  // If the writer's machine vanishes, its locks are free after about 11 s.
  tcp_keepalives_idle: 5,
  tcp_keepalives_interval: 2,
  tcp_keepalives_count: 3,
};

type Options = {
  readonly databaseUrl: string;
  readonly installation?: string;
  readonly clock: Clock;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
};

/**
 * The writer's session in Postgres. Its locks say which shards this writer has, so the end of the session releases them. It also
 * makes partitions.
 */
export class WriterSession {
  readonly #options: Options;
  readonly #owned: OwnedShards;
  /** Shards of a cluster that are left out, and until when (ms). */
  readonly #leftOut = new Map<number, number>();
  #session: PostgresSession | null = null;
  #madePartitionsAt = 0;

  constructor(options: Options, layout: Layout) {
    this.#options = options;
    this.#owned = new OwnedShards(layout);
  }

  get isOpen(): boolean {
    return this.#session?.open === true;
  }

  /** The shards of this writer; none while the session is closed. */
  get shards(): readonly number[] {
    return this.isOpen ? this.#owned.shards : [];
  }

  get hasAllShards(): boolean {
    return this.isOpen && this.#owned.hasAll;
  }

  /** The shards of this writer that are not left out. */
  usableShards(): readonly number[] {
    const { shards } = this.#owned;
    if (this.#leftOut.size === 0) return shards;
    const now = performance.now();
    for (const [shard, until] of this.#leftOut) if (until <= now) this.#leftOut.delete(shard);
    return shards.filter((shard) => !this.#leftOut.has(shard));
  }

  leaveOut(shards: Iterable<number>): void {
    for (const shard of shards) this.#leftOut.set(shard, performance.now() + LEFT_OUT_MS);
  }

  /** Another writer may just have ended and left shards that no writer has: the next `ready` tries to take them. */
  lookSoon(): void {
    this.#owned.lookSoon();
  }

  /**
   * An open session. It has the shards of its share, and has made the partitions of the coming days.
   *
   * @param beforeGivingUp  ends all work on the shards of this writer
   */
  async ready(beforeGivingUp: () => Promise<void>): Promise<PostgresSession> {
    const session = this.#session?.open ? this.#session : this.#connect();
    const now = performance.now();
    if (await this.#owned.balance(session, beforeGivingUp)) {
      this.#options.log.info({ shards: this.#owned.shards }, 'the shards of this writer have changed');
    }
    if (now - this.#madePartitionsAt >= PARTITIONS_MS) {
      this.#madePartitionsAt = now;
      await this.#makePartitions(session);
    }
    return session;
  }

  #connect(): PostgresSession {
    this.#owned.reset();
    this.#madePartitionsAt = Number.NEGATIVE_INFINITY;
    const { databaseUrl, installation } = this.#options;
    const options = { url: databaseUrl, applicationName: 'tollgate-writer', settings: SETTINGS };
    this.#session = new PostgresSession({ ...options, ...(installation && { installation }) }, QUERY_TIMEOUT_MS);
    return this.#session;
  }

  /**
   * Making a partition fails while a long query is reading `calls`. That must not stop the writer: the default partition takes
   * calls of days without a partition.
   */
  async #makePartitions(session: PostgresSession): Promise<void> {
    try {
      await makePartitions(session, this.#options.clock(), this.#options.log);
    } catch (error) {
      if (!session.open) throw error;
      this.#options.log.warn({ err: error }, 'cannot make partitions of calls now, trying again in a minute');
      this.#madePartitionsAt += PARTITIONS_RETRY_MS - PARTITIONS_MS;
    }
  }

  close(): void {
    this.#session?.close();
  }
}
