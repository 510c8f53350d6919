import type { PostgresSession } from '../../platform/postgres.ts';
import { checkLayout, type Layout } from '../layout.ts';
import { WRITER_LOCK, WRITERS_LOCK } from '../locks.ts';

/** How often a writer checks which shards are free, and how many writers there are. */
const LOOK_MS = 1_000;
/**
 * Several writers may try to take the same free shards. A writer that gets fewer than it tried to take looks again at once, at most
 * this many times.
 */
const MAX_LOOKS = 4;

type Look = { readonly writers: number; readonly held: ReadonlySet<number> };

/**
 * The shards whose streams this writer stores: as many as its share, which is the number of shards divided by the number of
 * writers, rounded up.
 *
 *   a writer starts: the others give up what they have beyond their new share ──► it takes what is free
 *   a writer ends, however: its session ends, so its locks are free           ──► the others take what is free
 *
 * The writers do not communicate. Each has a session lock for each of its shards, and one that only says that it exists; it counts
 * the locks of all in `pg_locks`. Which writer stores a shard only divides the work: each call is stored once because of its id.
 */
export class OwnedShards {
  readonly #layout: Layout;
  readonly #all: readonly number[];
  #shards: readonly number[] = [];
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isThere = false;

  constructor(layout: Layout) {
    this.#layout = layout;
    this.#all = Array.from({ length: layout.shards }, (_, shard) => shard);
  }

  get shards(): readonly number[] {
    return this.#shards;
  }

  get hasAll(): boolean {
    return this.#shards.length === this.#all.length;
  }

  /** A new session has no locks. */
  reset(): void {
    this.#shards = [];
    this.#isThere = false;
    this.lookSoon();
  }

  /** Makes the next `balance` look, although the last look was not long ago. */
  lookSoon(): void {
    this.#lookedAt = Number.NEGATIVE_INFINITY;
  }

  /**
   * Takes free shards, or gives some up, if a look is due.
   *
   * @param beforeGivingUp  ends all work on the shards of this writer
   * @returns whether the shards have changed
   * @throws WrongLayout when the data in Redis are not laid out as this writer was told
   */
  async balance(session: PostgresSession, beforeGivingUp: () => Promise<void>): Promise<boolean> {
    if (performance.now() - this.#lookedAt < LOOK_MS) return false;
    this.#lookedAt = performance.now();
    const before = this.#shards;
    try {
      await this.#balance(session, beforeGivingUp);
    } catch (error) {
      // It is unknown what is locked now. The locks end with the session.
      session.close();
      throw error;
    }
    return this.#shards !== before;
  }

  async #balance(session: PostgresSession, beforeGivingUp: () => Promise<void>): Promise<void> {
    for (let looks = 0; looks < MAX_LOOKS; looks++) {
      const { writers, held } = await this.#look(session);
      const spare = Math.ceil(this.#all.length / writers) - this.#shards.length;
      if (spare < 0) {
        await beforeGivingUp();
        await this.#giveUp(session, this.#shards.slice(spare));
      }
      const free = spare > 0 ? this.#all.filter((shard) => !held.has(shard)).slice(0, spare) : [];
      if (free.length === 0) break;
      if ((await this.#take(session, free)) === free.length) break;
    }
  }

  async #look(session: PostgresSession): Promise<Look> {
    // The first look takes the lock before it counts: a function in the select list would be called for rows that are already read.
    if (!this.#isThere) {
      await session.query('SELECT pg_advisory_lock_shared($1::int, 0)', [WRITERS_LOCK]);
      // From here on no reshard can begin.
      await checkLayout(session, this.#layout);
    }
    this.#isThere = true;
    const rows = await session.query<{ lock: number; shard: number }>(
      `SELECT classid::int AS lock, objid::int AS shard FROM pg_locks
       WHERE locktype = 'advisory' AND granted AND classid::int = ANY($1::int[]) AND objsubid = 2
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`,
      [`{${WRITER_LOCK},${WRITERS_LOCK}}`],
    );
    const shards = rows.filter(({ lock }) => lock === WRITER_LOCK).map(({ shard }) => shard);
    return { writers: Math.max(1, rows.length - shards.length), held: new Set(shards) };
  }

  /** @returns how many of these shards were still free */
  async #take(session: PostgresSession, shards: readonly number[]): Promise<number> {
    const rows = await session.query<{ shard: number; taken: boolean }>(
      'SELECT shard, pg_try_advisory_lock($1::int, shard) AS taken FROM unnest($2::int[]) AS shard',
      [WRITER_LOCK, `{${shards.join(',')}}`],
    );
    const taken = rows.filter((row) => row.taken).map((row) => row.shard);
    if (taken.length > 0) this.#shards = [...this.#shards, ...taken].sort((a, b) => a - b);
    return taken.length;
  }

  async #giveUp(session: PostgresSession, shards: readonly number[]): Promise<void> {
    this.#shards = this.#shards.filter((shard) => !shards.includes(shard));
    await session.query('SELECT pg_advisory_unlock($1::int, shard) FROM unnest($2::int[]) AS shard', [
      WRITER_LOCK,
      `{${shards.join(',')}}`,
    ]);
  }
}
