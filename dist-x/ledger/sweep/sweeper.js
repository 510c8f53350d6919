import { Job } from '../../platform/job.js';
import { isWrongType } from '../../platform/redis.js';
import { DamageLog } from '../damage-log.js';
import { readRedisRun, readRedisTime } from '../redis-run.js';
import { sweepScript } from '../scripts.js';
import { ABANDONED } from '../usage-event.js';
import { Steadiness } from './steadiness.js';
/** Maximum number of holds that one trip of sweep.lua settles; more take several trips. Redis does nothing else during a script. */
const MAX_GROUP = 100;
const SCAN_COUNT = 500;
/** Number of shards scanned concurrently. Scanning 500 holds of each keeps Redis from other work for at most 2 ms. */
const SHARDS_AT_ONCE = 16;
/** How long a tombstone (it marks a cancelled admission that may still arrive) is kept: far longer than any command timeout. */
const TOMBSTONE_MS = 60_000;
/** A lease is deleted when its last renewal is this many lease times ago and no hold names its instance. */
const FORGET_AFTER_BOUNDS = 10;
/**
 * Settles the holds of gateways that died: the buyer is refunded, and the outcome is `abandoned`. The sweeper only proposes
 * holds; the script decides, by Redis's clock. Any number of sweepers may work at the same time.
 *
 * A started sweeper trusts leases only while Redis answers without a gap (see `Steadiness`), and sweeps a shard only after its
 * holds were compared with Postgres. So the holds of a dead gateway are swept within one lease and two rounds of its death, or
 * of the moment when Redis came back or the sweeper started, provided that Postgres is available. After `stop` the round under way
 * skips the shards that it has not reached yet.
 */
export class Sweeper extends Job {
    #options;
    #steadiness;
    #swept = 0;
    #leftAlone = 0;
    #damage;
    constructor(options) {
        const { leaseSeconds, intervalMs = (leaseSeconds * 1000) / 3, log } = options;
        super({
            everyMs: intervalMs,
            messages: { failing: 'cannot sweep now', again: 'sweeps again' },
            log,
        });
        this.#options = options;
        this.#steadiness = new Steadiness(leaseSeconds);
        this.#damage = new DamageLog(log);
    }
    /** Number of holds swept since the start. */
    get swept() {
        return this.#swept;
    }
    /** Number of holds that the last round left alone, because they are damaged or of a newer version. */
    get leftAlone() {
        return this.#leftAlone;
    }
    /** How often shards and wallets were found damaged, by kind. */
    get damage() {
        return this.#damage.counts;
    }
    /**
     * Sweeps every shard once. Unlike a round, it relies on leases and holds even if Redis has just come back.
     *
     * @returns number of holds swept
     * @throws when Redis is away; or when a shard's own keys are damaged, after all other shards were swept
     */
    async sweepOnce() {
        const { swept, damaged } = await this.#sweepAll(BLIND_TRUST);
        if (damaged.length > 0)
            throw damaged[0];
        return swept;
    }
    /**
     * Sweeps `SHARDS_AT_ONCE` shards concurrently. When shards were swept one after another, each answer of Redis woke the process:
     * fifty times a round, most of the work of an idle writer.
     *
     * @returns number of holds swept, and the errors of shards whose own keys are damaged
     */
    async #sweepAll(trust) {
        let [swept, leftAlone] = [0, 0];
        const failures = [];
        const damaged = [];
        const all = this.#options.shards ?? Array.from(this.#options.keys.open.keys());
        for (let first = 0; first < all.length; first += SHARDS_AT_ONCE) {
            const shards = all.slice(first, first + SHARDS_AT_ONCE);
            // The time is read before the leases, so a lease renewed between these two readings only looks younger.
            const nowMs = await readRedisTime(this.#options.redis);
            this.#steadiness.answered(nowMs);
            const results = await Promise.allSettled(shards.map((shard) => this.#sweepShard(shard, nowMs, trust)));
            for (const [i, result] of results.entries()) {
                if (result.status === 'fulfilled') {
                    swept += result.value.swept;
                    leftAlone += result.value.leftAlone;
                    this.#damage.shardWorks(shards[i]);
                }
                else if (isDamage(result.reason)) {
                    damaged.push(result.reason);
                    this.#damage.found('shard', '', '', shards[i]);
                }
                else
                    failures.push(result.reason);
            }
            if (failures.length > 0)
                break;
        }
        this.#swept += swept;
        if (swept > 0)
            this.#options.log.info({ holds: swept }, 'swept holds of gateways that died');
        if (failures.length > 0)
            throw failures[0];
        this.#reportLeftAlone(leftAlone);
        return { swept, damaged };
    }
    /** Logs one line when the number changes, unless it is 0 now. */
    #reportLeftAlone(holds) {
        if (holds > 0 && holds !== this.#leftAlone) {
            this.#options.log.warn({ holds }, 'the sweep left alone open holds that are damaged or of a newer version');
        }
        this.#leftAlone = holds;
    }
    async #sweepShard(shard, nowMs, trust) {
        const { redis, keys } = this.#options;
        const open = keys.open[shard];
        const leases = await this.#readLeases(shard);
        if (!trust.in(shard))
            return { swept: 0, leftAlone: 0 };
        const holders = new Set();
        let swept = 0;
        // A set of usage ids, because a scan may return the same hold twice.
        const leftAlone = new Set();
        let cursor = '0';
        do {
            const [next, pairs] = (await redis.command('hscan', [open, cursor, 'COUNT', String(SCAN_COUNT)]));
            cursor = next;
            const candidates = [];
            for (let i = 0; i + 1 < pairs.length; i += 2) {
                const hold = readHold(pairs[i], pairs[i + 1]);
                if (hold === null) {
                    leftAlone.add(pairs[i]);
                    continue;
                }
                holders.add(hold.instance);
                if (this.#isCandidate(hold, leases, nowMs))
                    candidates.push(hold);
            }
            for (let from = 0; from < candidates.length; from += MAX_GROUP) {
                swept += await this.#sweepGroup(shard, candidates.slice(from, from + MAX_GROUP), nowMs, trust);
            }
        } while (cursor !== '0');
        await this.#forgetLeases(shard, leases, holders, nowMs);
        return { swept, leftAlone: leftAlone.size };
    }
    #isCandidate(hold, leases, nowMs) {
        if (hold.tombstone)
            return nowMs - hold.atMs > TOMBSTONE_MS;
        // Holds are candidates, too, if their lease is missing, is not a number or lies in the future: sweep.lua decides about these.
        const renewedAt = leases.get(hold.instance) ?? Number.NaN;
        return !(renewedAt <= nowMs) || nowMs - renewedAt > this.#options.leaseSeconds * 1000;
    }
    async #sweepGroup(shard, candidates, judgedAtMs, { dataId }) {
        const { redis, keys, leaseSeconds } = this.#options;
        const names = [keys.open[shard], keys.lease[shard], keys.usage[shard]];
        for (const { accountId } of candidates)
            names.push(keys.wallet(shard, accountId));
        const args = [String(leaseSeconds * 1000), String(TOMBSTONE_MS), ABANDONED, String(judgedAtMs), dataId];
        for (const { usageId } of candidates)
            args.push(usageId);
        const [swept, ...damaged] = (await redis.script(sweepScript, names.length, [...names, ...args]));
        for (const usageId of damaged) {
            const accountId = candidates.find((hold) => hold.usageId === usageId)?.accountId ?? '';
            this.#damage.found('wallet', accountId, usageId, shard);
        }
        return swept;
    }
    async #readLeases(shard) {
        const { redis, keys } = this.#options;
        // ioredis turns this reply into an object.
        const fields = (await redis.command('hgetall', [keys.lease[shard]]));
        const leases = new Map(Object.entries(fields).map(([instance, at]) => [instance, Number(at)]));
        return leases;
    }
    /** Deletes old leases. A gateway that wakes after such a long sleep renews its lease in the trip of its next admission. */
    async #forgetLeases(shard, leases, holders, nowMs) {
        const { redis, keys, leaseSeconds } = this.#options;
        const forgetMs = leaseSeconds * 1000 * FORGET_AFTER_BOUNDS;
        const dead = Array.from(leases).filter(([instance, at]) => nowMs - at > forgetMs && !holders.has(instance));
        if (dead.length > 0) {
            await redis.command('hdel', [keys.lease[shard], ...dead.map(([instance]) => instance)]);
        }
    }
    async #look() {
        const { redis, isReconciled } = this.#options;
        const run = await readRedisRun(redis);
        this.#steadiness.reported({
            runId: run.dataId,
            uptimeSeconds: run.uptimeSeconds,
            nowMs: await readRedisTime(redis),
        });
        return {
            dataId: run.dataId,
            in: (shard) => !this.stopping.aborted && this.#steadiness.lasting && isReconciled(shard, run.dataId),
        };
    }
    async round() {
        try {
            const trust = await this.#look();
            if (this.#steadiness.lasting)
                await this.#sweepAll(trust);
        }
        catch (error) {
            // The same failure (a Redis that refuses all writes, for example) may keep living gateways from renewing their leases.
            this.#steadiness.lost();
            throw error;
        }
    }
}
/** Whether an error means that the keys of one shard are damaged, while Redis and all other shards work. */
const isDamage = (error) => isWrongType(error) || (error instanceof Error && error.message.includes('exhausted the last possible ID'));
const BLIND_TRUST = { dataId: '', in: () => true };
const HOLD = /^v1\t\d{1,16}\t[01]\t(\d+)\t([^\t]*)\t([^\t]*)\t[^\t]*\t[^\t]*\t/;
const TOMBSTONE = /^x\t\t(\d+)\t([^\t]*)$/;
/** Reads a hold as batch.lua writes it, or a tombstone, which has no account. Null: damaged, or of another version. */
function readHold(usageId, text) {
    const hold = HOLD.exec(text);
    const found = hold ?? TOMBSTONE.exec(text);
    if (found === null)
        return null;
    const [, at, instance = '', accountId = ''] = found;
    return { usageId, instance, accountId, atMs: Number(at), tombstone: hold === null };
}
//# sourceMappingURL=sweeper.js.map