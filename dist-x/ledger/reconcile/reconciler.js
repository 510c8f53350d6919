import { isUuid } from '../../platform/ids.js';
import { isWrongType } from '../../platform/redis.js';
import { Sleeper } from '../../platform/timing.js';
import { readRedisRun, readRedisTime } from '../redis-run.js';
import { agrees, compare } from './identity.js';
import { obstacleOf } from './provable.js';
import { saveReport, selectBegunRepairs, selectReports } from './reconcile-sql.js';
import { Repairer } from './repairer.js';
import { hadAgreed, newDrift, newReport, notCompared, ReportSums } from './report.js';
import { ShardView, StreamTooLong } from './shard-view.js';
/**
 * Maximum number of accounts read while the shard's flush lock is kept, which takes some milliseconds. The lock is given up between
 * two pages, so that flushes of the shard do not wait for all its accounts.
 */
const PAGE = 500;
/**
 * For each page Redis reads all open holds of the shard, 1.3 µs each. When that takes longer than reading 500 wallets, larger pages
 * need less of its time in all. 2 000 accounts keep the flush lock for some 20 ms.
 */
const PAGE_WITH_MANY_HOLDS = 2_000;
const MANY_HOLDS = 1_000;
const SCAN_COUNT = 1_000;
/** Share of the time that a 'gently' paced run works. Without pauses, 100 000 accounts kept Postgres busy for 2 s: calls waited. */
const GENTLE_SHARE = 0.1;
const LONGEST_PAUSE_MS = 200;
/** Maximum number of accounts that one run tries to repair, at a few milliseconds each; the next run tries the rest. */
const MAX_REPAIRS = 2_000;
/**
 * Compares the wallets in Redis with Postgres, shard by shard and page by page; repairs what is provably the effect of a Redis
 * whose state is older than Postgres; and stores the reports. This process makes one run at a time; runs of several processes
 * do each other no harm.
 */
export class Reconciler {
    #stores;
    #repairer;
    #maxRepairs;
    #shards;
    #inTurn;
    #bounds;
    #learnt = { dataId: '', shards: new Set(), unproven: new Map() };
    #running = null;
    #last = null;
    #stopping = false;
    #sleeper = new Sleeper();
    constructor(stores, { maxRepairs = MAX_REPAIRS, shards = Array.from(stores.keys.open.keys()), inTurn = (work) => work(), bounds = {}, } = {}) {
        this.#stores = stores;
        this.#maxRepairs = maxRepairs;
        this.#shards = shards;
        this.#inTurn = inTurn;
        this.#bounds = bounds;
        this.#repairer = new Repairer(stores);
    }
    /** The last run that finished; null before the first. */
    get last() {
        return this.#last;
    }
    /** Number of wallets repaired since the start. */
    get repaired() {
        return this.#repairer.repaired;
    }
    /** Whether a run has compared the shard since Redis has these data, and left nothing there that may still be repaired. */
    hasCompared(shard, dataId) {
        return this.#learnt.dataId === dataId && this.#learnt.shards.has(shard);
    }
    /**
     * If a run is under way already, returns that one.
     *
     * @param by recorded with each repair as its maker
     * @param pace 'gently': pause within shards that `hasCompared` counts as compared, since the sweep does not wait for those
     * @throws when a store is away, Redis restarts or `stop` is called; then it is unknown which accounts still need a repair
     */
    run(by, pace = 'at once') {
        this.#running ??= this.#inTurn(() => this.#runOnce(by, pace === 'gently')).finally(() => {
            this.#running = null;
        });
        return this.#running;
    }
    /** Stops the run under way before its next step; that run rejects. */
    stop() {
        this.#stopping = true;
        this.#sleeper.wake();
    }
    async #runOnce(by, isGentle) {
        const { sql } = this.#stores;
        const before = await selectReports(sql);
        const scene = {
            ...(await readStart(this.#stores, before)),
            accounts: await this.#scanWallets(),
            before: new Map(before.map((report) => [report.shard, report])),
            begunRepairs: await selectBegunRepairs(sql),
            repairsLeft: this.#maxRepairs,
            undecided: 0,
            behind: [],
        };
        const { dataId } = scene;
        if (this.#learnt.dataId !== dataId) {
            this.#learnt = { dataId, shards: new Set(), unproven: new Map() };
        }
        const reports = [];
        for (const shard of this.#shards) {
            const report = await this.#compareShard(shard, scene, by, isGentle && this.#learnt.shards.has(shard));
            await saveReport(sql, report);
            reports.push(report);
        }
        this.#last = { reports, undecided: scene.undecided, behind: scene.behind, endedAtMs: Date.now() };
        return this.#last;
    }
    async #compareShard(shard, scene, by, isGentle) {
        const view = new ShardView(this.#stores, shard, scene.dataId, this.#bounds);
        const sums = new ReportSums();
        const disagreeing = [];
        const accounts = scene.accounts.get(shard) ?? [];
        const { redisRunId, redisStartedAtMs, nowMs } = scene;
        try {
            await view.readAhead();
            const holds = Number(await this.#stores.redis.command('hlen', [this.#stores.keys.open[shard]]));
            const page = holds > MANY_HOLDS ? PAGE_WITH_MANY_HOLDS : PAGE;
            for (let from = 0; from < accounts.length; from += page) {
                this.#checkStopping();
                const beganAt = performance.now();
                const { states } = await view.read(accounts.slice(from, from + page), async (reading) => reading);
                for (const state of states) {
                    const comparison = compare(state);
                    sums.add(comparison);
                    if (!agrees(comparison))
                        disagreeing.push(comparison);
                    else if (comparison.lostDebitsMicros === 0)
                        await this.#repairer.resolve(scene.begunRepairs.get(state.accountId) ?? [], state.wallet);
                    if (state.settled.lostCreditsMicros > 0)
                        await this.#repairer.restoreCredits(state, by);
                    if (comparison.lostDebitsMicros !== 0) {
                        const begun = scene.begunRepairs.get(state.accountId) ?? [];
                        await this.#repairer.restoreDebits({ view, shard, accountId: state.accountId, madeBy: by, begun });
                    }
                }
                if (isGentle)
                    await this.#pauseAfter(performance.now() - beganAt);
            }
            const drifts = [];
            const undecidedBefore = scene.undecided;
            for (const comparison of disagreeing) {
                const drift = await this.#repair(view, shard, comparison, scene, by);
                if (drift !== null)
                    drifts.push(drift);
            }
            if (scene.undecided === undecidedBefore)
                this.#learnt.shards.add(shard);
            return newReport({ shard, checkedAtMs: nowMs, redisRunId, isHeir: redisStartedAtMs === null }, sums, drifts);
        }
        catch (error) {
            if (error instanceof StreamTooLong)
                scene.behind.push(shard);
            if (error instanceof StreamTooLong || isWrongType(error))
                return notCompared(shard, nowMs, scene.before.get(shard));
            throw error;
        }
    }
    /** @returns the drift that is left; null when the account agrees */
    async #repair(view, shard, found, scene, madeBy) {
        this.#checkStopping();
        const { accountId } = found;
        const { redisStartedAtMs, redisRunId, nowMs } = scene;
        const before = scene.before.get(shard);
        const driftingSinceMs = before?.driftingSince[accountId] ?? null;
        const agreedSinceStart = before?.redisRunId === redisRunId && hadAgreed(before, accountId);
        const since = driftingSinceMs ?? nowMs;
        // An obstacle is not remembered in `unproven`, because an operator can remove it while this Redis process runs. Nor does it
        // count as undecided, because the sweep need not wait for the operator.
        const obstacle = obstacleOf(found);
        if (obstacle !== null)
            return newDrift(found, since, obstacle);
        const { unproven } = this.#learnt;
        const known = unproven.get(accountId);
        if (known !== undefined)
            return newDrift(found, since, known);
        if (scene.repairsLeft <= 0) {
            scene.undecided++;
            return newDrift(found, since, 'not tried yet: this run has tried its maximum number of repairs');
        }
        scene.repairsLeft--;
        const evidence = { redisStartedAtMs, driftingSinceMs, agreedSinceStart };
        const begun = scene.begunRepairs.get(accountId) ?? [];
        const left = await this.#repairer.repair({ view, shard, accountId, madeBy, begun, ...evidence });
        if (left === null)
            return null;
        if (left.isFinal)
            unproven.set(accountId, left.unproven);
        else if (obstacleOf(left.comparison) === null)
            scene.undecided++;
        return newDrift(left.comparison, since, left.unproven);
    }
    /** Accounts with a loaded wallet, by shard. The scan may miss a wallet that is loaded during it, but that agrees with Postgres. */
    async #scanWallets() {
        const { redis, keys } = this.#stores;
        const accounts = new Map();
        let cursor = '0';
        do {
            this.#checkStopping();
            const args = [cursor, 'MATCH', this.#walletPattern(), 'COUNT', String(SCAN_COUNT)];
            const [next, names] = (await redis.command('scan', args));
            cursor = next;
            for (const name of names) {
                const id = name.slice(name.lastIndexOf(':') + 1);
                const shard = keys.shardOf(id);
                if (!isUuid(id) || name !== keys.wallet(shard, id))
                    continue;
                // A set, because a scan may return the same key twice.
                accounts.set(shard, (accounts.get(shard) ?? new Set()).add(id));
            }
        } while (cursor !== '0');
        return new Map(Array.from(accounts, ([shard, ids]) => [shard, Array.from(ids)]));
    }
    /** Redis goes through all its keys in any case, but sends fewer names. */
    #walletPattern() {
        const [only, ...others] = this.#shards;
        return only !== undefined && others.length === 0 ? this.#stores.keys.wallet(only, '*') : 'wallet:*';
    }
    /** Pauses as long as `GENTLE_SHARE` asks for, but at most `LONGEST_PAUSE_MS`. `stop` ends the pause early. */
    #pauseAfter(workedMs) {
        const pauseMs = Math.min(workedMs * (1 / GENTLE_SHARE - 1), LONGEST_PAUSE_MS);
        return this.#sleeper.sleep(pauseMs);
    }
    #checkStopping() {
        if (this.#stopping)
            throw new Error('the reconciliation was told to stop');
    }
}
/** Reads which Redis answers and when it started. The start is exact to `START_UNCERTAIN_MS`. */
async function readStart({ redis }, before) {
    const { runId, dataId, uptimeSeconds, ...run } = await readRedisRun(redis);
    const nowMs = await readRedisTime(redis);
    // Redis itself forgets that it was a replica, but a report does not.
    const isHeir = run.isHeir || before.some((report) => report.redisRunId === runId && report.isHeir);
    return { redisRunId: runId, dataId, redisStartedAtMs: isHeir ? null : nowMs - uptimeSeconds * 1000, nowMs };
}
//# sourceMappingURL=reconciler.js.map