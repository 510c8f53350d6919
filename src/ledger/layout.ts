import { type PostgresSession, type Sql, WRONG_LAYOUT } from '../platform/postgres.ts';
import type { RedisStore } from '../platform/redis.ts';
import type { RedisKeys } from '../platform/redis-keys.ts';
import { StartRefused } from '../platform/start-refused.ts';

/**
 * How the data in Redis are laid out. Postgres stores this (`installation`), so that no process looks for wallets in the wrong
 * shard.
 *
 *   none ──first start──► kept ──reshard begins──► moving ──reshard ends──► none
 *                          ▲─────taken back, or refused──┘
 *
 * While data are being moved, every start is refused, and running processes load no wallets and take no shards. A process checks
 * once more after others can see it: a gateway by its lease, a writer by its lock. So either it sees that the data are being moved,
 * or `reshard` sees it.
 */
export type Layout = { readonly shards: number; readonly layout: 'single' | 'cluster' };

/**
 * The process was started for another layout, or the data are being moved. This counts as a store that is away: callers get 503.
 */
export class WrongLayout extends StartRefused {
  readonly code = WRONG_LAYOUT;

  constructor(
    reason = 'a reshard is running, or has run since this process started: start this process again after the reshard',
  ) {
    super(reason);
  }
}

type Stores = { readonly redis: Pick<RedisStore, 'isCluster'>; readonly keys: Pick<RedisKeys, 'shards'> };

export const layoutOf = ({ redis, keys }: Stores): Layout => ({
  shards: keys.shards,
  layout: redis.isCluster ? 'cluster' : 'single',
});

/** SQL: whether the data in Redis have the layout of these two parameters now. */
export const hasLayoutSql = (shards: string, layout: string): string =>
  `EXISTS (SELECT FROM installation
           WHERE redis_shards = ${shards}::int AND redis_layout = ${layout}::text AND moving_since IS NULL)`;

/** @throws WrongLayout */
export async function checkLayout(session: PostgresSession, { shards, layout }: Layout): Promise<void> {
  const rows = await session.query<{ ours: boolean }>(`SELECT ${hasLayoutSql('$1', '$2')} AS ours`, [shards, layout]);
  if (rows[0]?.ours !== true) throw new WrongLayout();
}

/** The first start stores its layout. A start with another one is refused: `refuseOtherLayout`. */
export async function keepLayout(
  sql: Sql,
  ours: Layout,
  options: { readonly mayBeMoving?: boolean } = {},
): Promise<void> {
  await sql`UPDATE installation SET redis_shards = ${ours.shards}, redis_layout = ${ours.layout} WHERE redis_shards IS NULL`;
  await refuseOtherLayout(sql, ours, options);
}

/**
 * Reads only. With another layout most wallets would be looked for in the wrong shard, while their money is still held in the right
 * one.
 *
 * @throws WrongLayout when the data in Redis have another layout, or are being moved; not if no start has stored a layout yet
 */
export async function refuseOtherLayout(sql: Sql, ours: Layout, { mayBeMoving = false } = {}): Promise<void> {
  const rows = await sql<(Layout & { moving: boolean })[]>`
    SELECT redis_shards AS shards, redis_layout AS layout, moving_since IS NOT NULL AS moving FROM installation
    WHERE redis_shards IS NOT NULL`;
  const kept = rows[0];
  if (kept === undefined) return;
  const told = ({ shards, layout }: Layout): string =>
    `${shards} shards in ${layout === 'single' ? 'a single Redis' : 'a Redis Cluster'}`;
  if (kept.shards !== ours.shards || kept.layout !== ours.layout) {
    throw new WrongLayout(
      `this installation has its data ${told(kept)}, but REDIS_URL and REDIS_SHARDS say ${told(ours)}. ` +
        'To change that, see "Another number of shards" in docs/operating.md',
    );
  }
  if (kept.moving && !mayBeMoving) {
    throw new WrongLayout(
      'a reshard has begun and has not ended: let it end or run `main.js reshard` again, or `main.js reshard --take-back` to stay with ' +
        told(kept),
    );
  }
}
