import { Job, type JobOptions } from '../../platform/job.ts';
import { isWrongType, type RedisStore } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { type Damage, DamageLog } from '../damage-log.ts';
import { lookForHoldsScript, sweepScript } from '../scripts.ts';
import { ABANDONED } from '../usage-event.ts';
import { Steadiness } from './steadiness.ts';

/** Maximum number of holds that one trip of sweep.lua settles; more take several trips. Redis does nothing else during a script. */
const MAX_GROUP = 100;
const SCAN_COUNT = 500;
/** Number of shards scanned concurrently. Scanning 500 holds in each keeps Redis from other work for at most 2 ms. */
const SHARDS_AT_ONCE = 16;
/** How long a tombstone, which marks a cancelled admission that may still arrive, is kept: far longer than any command timeout. */
const TOMBSTONE_MS = 60_000;
/** A lease is deleted when its last renewal is this many lease times ago and no hold names its instance. */
const FORGET_AFTER_BOUNDS = 10;

type SweeperOptions = {
  readonly redis: RedisStore;
  readonly keys: RedisKeys;
  /** The shards to sweep. Default: all. `redis` is asked about all of them by one script, so all must be in one Redis. */
  readonly shards?: readonly number[];
  /** A gateway that has not renewed its lease for this long counts as dead. */
  readonly leaseSeconds: number;
  /** Pause between rounds. Default: a third of the lease. */
  readonly intervalMs?: number;
  /**
   * Whether the `Reconciler` has compared the shard's holds with Postgres since Redis has had these data (`RedisRun`). A Redis that
   * came back with an older state has the holds of stored calls again, and sweeping those would refund calls that were charged.
   */
  readonly isReconciled: (shard: number, dataId: string) => boolean;
  readonly log: JobOptions['log'];
};

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
  readonly #options: SweeperOptions;
  readonly #shards: readonly number[];
  readonly #steadiness: Steadiness;
  #swept = 0;
  #leftAlone = 0;
  readonly #damage: DamageLog;

  constructor(options: SweeperOptions) {
    const { leaseSeconds, intervalMs = (leaseSeconds * 1000) / 3, log } = options;
    super({
      everyMs: intervalMs,
      messages: {
        failing: 'cannot sweep the holds of dead gateways now',
        again: 'can sweep the holds of dead gateways again',
      },
      log,
    });
    this.#options = options;
    this.#shards = options.shards ?? Array.from(options.keys.open.keys());
    this.#steadiness = new Steadiness(leaseSeconds);
    this.#damage = new DamageLog(log);
  }

  /** Number of holds swept since the start. */
  get swept(): number {
    return this.#swept;
  }

  /** Number of holds that the last round left alone, because they are damaged or of a newer version. */
  get leftAlone(): number {
    return this.#leftAlone;
  }

  /** How often shards and wallets were found damaged, by kind. */
  get damage(): ReadonlyMap<Damage, number> {
    return this.#damage.counts;
  }

  /**
   * Sweeps every shard once. Unlike a round, it relies on leases and holds even if Redis has just come back.
   *
   * @returns number of holds swept
   * @throws when Redis is away; or when a shard's own keys are damaged, after all other shards were swept
   */
  async sweepOnce(): Promise<number> {
    const { swept, damaged } = await this.#sweepAll(await this.#look(), BLIND_TRUST);
    if (damaged.length > 0) throw damaged[0];
    return swept;
  }

  /**
   * Sweeps the shards in which the look has found something, `SHARDS_AT_ONCE` concurrently. The time is that of the look, before
   * the leases are read, so a lease renewed between these two readings only looks younger.
   *
   * @returns number of holds swept, and the errors of shards whose own keys are damaged
   */
  async #sweepAll({ nowMs, found }: Look, trust: Trust): Promise<{ swept: number; damaged: unknown[] }> {
    let [swept, leftAlone] = [0, 0];
    const failures: unknown[] = [];
    const damaged: unknown[] = [];
    for (const shard of this.#shards) if (!found.includes(shard)) this.#damage.shardWorks(shard);
    for (let first = 0; first < found.length; first += SHARDS_AT_ONCE) {
      const shards = found.slice(first, first + SHARDS_AT_ONCE);
      const results = await Promise.allSettled(shards.map((shard) => this.#sweepShard(shard, nowMs, trust)));
      for (const [i, result] of results.entries()) {
        if (result.status === 'fulfilled') {
          swept += result.value.swept;
          leftAlone += result.value.leftAlone;
          this.#damage.shardWorks(shards[i] as number);
        } else if (isDamage(result.reason)) {
          damaged.push(result.reason);
          this.#damage.found('shard', '', '', shards[i] as number);
        } else failures.push(result.reason);
      }
      if (failures.length > 0) break;
    }
    this.#swept += swept;
    if (swept > 0) this.#options.log.info({ holds: swept }, 'swept holds of gateways that died');
    if (failures.length > 0) throw failures[0];
    this.#reportLeftAlone(leftAlone);
    return { swept, damaged };
  }

  /** Logs one line when the number changes, unless it is 0 now. */
  #reportLeftAlone(holds: number): void {
    if (holds > 0 && holds !== this.#leftAlone) {
      this.#options.log.warn({ holds }, 'the sweep left alone open holds that are damaged or of a newer version');
    }
    this.#leftAlone = holds;
  }

  async #sweepShard(shard: number, nowMs: number, trust: Trust): Promise<{ swept: number; leftAlone: number }> {
    const { redis, keys } = this.#options;
    const open = keys.open[shard] as string;
    const scan = async (from: string): Promise<[string, string[]]> =>
      (await redis.command('hscan', [open, from, 'COUNT', String(SCAN_COUNT)])) as [string, string[]];
    if (!trust.in(shard)) return { swept: 0, leftAlone: 0 };
    // Sent together and carried out in this order, so that an idle process wakes up once for both.
    const [leases, first] = await Promise.all([this.#readLeases(shard), scan('0')]);
    const holders = new Set<string>();
    let swept = 0;
    // A set of usage ids, because a scan may return the same hold twice.
    const leftAlone = new Set<string>();
    let page = first;
    for (;;) {
      const [next, pairs] = page;
      const candidates: Candidate[] = [];
      for (let i = 0; i + 1 < pairs.length; i += 2) {
        const hold = readHold(pairs[i] as string, pairs[i + 1] as string);
        if (hold === null) {
          leftAlone.add(pairs[i] as string);
          continue;
        }
        holders.add(hold.instance);
        if (this.#isCandidate(hold, leases, nowMs)) candidates.push(hold);
      }
      for (let from = 0; from < candidates.length; from += MAX_GROUP) {
        swept += await this.#sweepGroup(shard, candidates.slice(from, from + MAX_GROUP), nowMs, trust);
      }
      if (next === '0') break;
      page = await scan(next);
    }
    await this.#forgetLeases(shard, leases, holders, nowMs);
    return { swept, leftAlone: leftAlone.size };
  }

  #isCandidate(hold: Candidate, leases: ReadonlyMap<string, number>, nowMs: number): boolean {
    if (hold.tombstone) return nowMs - hold.atMs > TOMBSTONE_MS;
    // Holds are also candidates if their lease is missing, is not a number or lies in the future: sweep.lua decides about these.
    const renewedAt = leases.get(hold.instance) ?? Number.NaN;
    return !(renewedAt <= nowMs) || nowMs - renewedAt > this.#options.leaseSeconds * 1000;
  }

  async #sweepGroup(
    shard: number,
    candidates: readonly Candidate[],
    judgedAtMs: number,
    { dataId }: Trust,
  ): Promise<number> {
    const { redis, keys, leaseSeconds } = this.#options;
    const names = [keys.open[shard] as string, keys.lease[shard] as string, keys.usage[shard] as string];
    for (const { accountId } of candidates) {
      names.push(keys.wallet(shard, accountId), keys.claims(shard, accountId), keys.claimTimes(shard, accountId));
    }
    const args = [String(leaseSeconds * 1000), String(TOMBSTONE_MS), ABANDONED, String(judgedAtMs), dataId];
    for (const { usageId } of candidates) args.push(usageId);
    const [swept, ...damaged] = (await redis.script(sweepScript, names.length, [...names, ...args])) as [
      number,
      ...string[],
    ];
    for (const usageId of damaged) {
      const accountId = candidates.find((hold) => hold.usageId === usageId)?.accountId ?? '';
      this.#damage.found('wallet', accountId, usageId, shard);
    }
    return swept;
  }

  async #readLeases(shard: number): Promise<Map<string, number>> {
    const { redis, keys } = this.#options;
    // ioredis turns this reply into an object.
    const fields = (await redis.command('hgetall', [keys.lease[shard] as string])) as Record<string, string>;
    const leases = new Map(Object.entries(fields).map(([instance, at]) => [instance, Number(at)]));
    return leases;
  }

  /** Deletes old leases. A gateway that wakes up after so long a time renews its lease in the trip of its next admission. */
  async #forgetLeases(
    shard: number,
    leases: ReadonlyMap<string, number>,
    holders: ReadonlySet<string>,
    nowMs: number,
  ): Promise<void> {
    const { redis, keys } = this.#options;
    const dead = Array.from(leases).filter(([instance, at]) => nowMs - at > this.#forgetMs && !holders.has(instance));
    if (dead.length > 0) {
      await redis.command('hdel', [keys.lease[shard] as string, ...dead.map(([instance]) => instance)]);
    }
  }

  get #forgetMs(): number {
    return this.#options.leaseSeconds * 1000 * FORGET_AFTER_BOUNDS;
  }

  /** A single command. Asking shards one by one, with two commands each, was most of the work of an idle writer. */
  async #look(): Promise<Look> {
    const { redis, keys } = this.#options;
    const names = this.#shards.flatMap((shard) => [keys.open[shard] as string, keys.lease[shard] as string]);
    const args = [String(TOMBSTONE_MS), String(this.#forgetMs)];
    const [nowMs, dataId, ...indexes] = (await redis.script(lookForHoldsScript, names.length, [...names, ...args])) as [
      number,
      string,
      ...number[],
    ];
    return { nowMs, dataId, found: indexes.map((index) => this.#shards[index] as number) };
  }

  protected override async round(): Promise<void> {
    try {
      const look = await this.#look();
      this.#steadiness.reported(look);
      const { dataId } = look;
      const isTrusted = (shard: number): boolean => !this.stopping.aborted && this.#options.isReconciled(shard, dataId);
      if (this.#steadiness.lasting) await this.#sweepAll(look, { dataId, in: isTrusted });
    } catch (error) {
      // The same failure (a Redis that refuses all writes, for example) may keep living gateways from renewing their leases.
      this.#steadiness.lost();
      throw error;
    }
  }
}

/** Whether an error means that the keys of one shard are damaged, while Redis and all other shards work. */
const isDamage = (error: unknown): boolean =>
  isWrongType(error) || (error instanceof Error && error.message.includes('exhausted the last possible ID'));

/** What `look-for-holds.lua` says. */
type Look = {
  /** Redis's time. */
  readonly nowMs: number;
  /** Which Redis answers (`RedisRun`). */
  readonly dataId: string;
  /** The shards in which there may be something to do. */
  readonly found: readonly number[];
};

/** What the sweeper may rely on during a round. */
type Trust = {
  /** The only Redis in which to sweep (`RedisRun`); '' allows any. */
  readonly dataId: string;
  /** Whether the shard's holds may be swept now. If not, a later round does so. */
  readonly in: (shard: number) => boolean;
};

const BLIND_TRUST: Trust = { dataId: '', in: () => true };

type Candidate = {
  readonly usageId: string;
  readonly instance: string;
  readonly accountId: string;
  readonly atMs: number;
  readonly tombstone: boolean;
};

const HOLD = /^v1\t\d{1,16}\t[01]\t(\d+)\t([^\t]*)\t([^\t]*)\t[^\t]*\t[^\t]*\t/;
const TOMBSTONE = /^x\t\t(\d+)\t([^\t]*)$/;

/** Reads a hold in the form of batch.lua, or a tombstone, which has no account. Null: damaged, or of another version. */
function readHold(usageId: string, text: string): Candidate | null {
  const hold = HOLD.exec(text);
  const found = hold ?? TOMBSTONE.exec(text);
  if (found === null) return null;
  const [, at, instance = '', accountId = ''] = found;
  return { usageId, instance, accountId, atMs: Number(at), tombstone: hold === null };
}
