import { WRONG_LAYOUT } from '../platform/postgres.js';
import { StartRefused } from '../platform/start-refused.js';
/** The process was started for another layout, or the data are being moved. It counts as a store that is away: callers get 503. */
export class WrongLayout extends StartRefused {
    code = WRONG_LAYOUT;
    constructor(reason = 'the data in Redis are being laid out anew, or were since this process started: start it again after that') {
        super(reason);
    }
}
export const layoutOf = ({ redis, keys }) => ({
    shards: keys.shards,
    layout: redis.isCluster ? 'cluster' : 'single',
});
/** SQL: whether the data in Redis have the layout of these two parameters now. */
export const hasLayoutSql = (shards, layout) => `EXISTS (SELECT FROM installation
           WHERE redis_shards = ${shards}::int AND redis_layout = ${layout}::text AND moving_since IS NULL)`;
/** @throws WrongLayout */
export async function checkLayout(session, { shards, layout }) {
    const rows = await session.query(`SELECT ${hasLayoutSql('$1', '$2')} AS ours`, [shards, layout]);
    if (rows[0]?.ours !== true)
        throw new WrongLayout();
}
/** The first start stores its layout. A start with another one is refused: `refuseOtherLayout`. */
export async function keepLayout(sql, ours, options = {}) {
    await sql `UPDATE installation SET redis_shards = ${ours.shards}, redis_layout = ${ours.layout} WHERE redis_shards IS NULL`;
    await refuseOtherLayout(sql, ours, options);
}
/**
 * Reads only. With another layout most wallets would be looked for where they are not, while money is still held where they are.
 *
 * @throws WrongLayout when the data in Redis are laid out otherwise, or are being moved; not if no start has stored a layout yet
 */
export async function refuseOtherLayout(sql, ours, { mayBeMoving = false } = {}) {
    const rows = await sql `
    SELECT redis_shards AS shards, redis_layout AS layout, moving_since IS NOT NULL AS moving FROM installation
    WHERE redis_shards IS NOT NULL`;
    const kept = rows[0];
    if (kept === undefined)
        return;
    const told = ({ shards, layout }) => `${shards} shards in ${layout === 'single' ? 'a single Redis' : 'a Redis Cluster'}`;
    if (kept.shards !== ours.shards || kept.layout !== ours.layout) {
        throw new WrongLayout(`this installation has its data ${told(kept)}, but REDIS_URL and REDIS_SHARDS say ${told(ours)}. ` +
            'To change that, see "Another number of shards" in docs/operating.md');
    }
    if (kept.moving && !mayBeMoving) {
        throw new WrongLayout('a reshard has begun and has not ended: let it end or run `main.js reshard` again, or `main.js reshard --take-back` to stay with ' +
            told(kept));
    }
}
//# sourceMappingURL=layout.js.map