import { isWrongType, type RedisClient } from '../../platform/redis.ts';
import type { RedisKeys } from '../../platform/redis-keys.ts';
import { overWithin } from '../../platform/timing.ts';
import { type Damage, DamageLog } from '../damage-log.ts';
import { readRedisRun, readRedisTime } from '../redis-run.ts';
import { sweepScript } from '../scripts.ts';
import { ABANDONED } from '../usage-event.ts';
import { Steadiness } from './steadiness.ts';

/** Holds settled in one run of the script: Redis does nothing else meanwhile. */
const MAX_GROUP = 100;
const SCAN_COUNT = 500;
/** Of 500 holds each: Redis does nothing else for 2 ms at most. */
const SHARDS_AT_ONCE = 16;
const STOP_MS = 2_000;
/** How long a cancelled admission could still arrive: far beyond any command timeout. */
const TOMBSTONE_MS = 60_000;
/** Leases are forgotten after this many bounds, when no hold refers to them. */
const FORGET_AFTER_BOUNDS = 10;

export type SweeperOptions = {
  readonly redis: RedisClient;
  readonly keys: RedisKeys;
  /** A gateway whose lease is older is dead. */
  readonly leaseSeconds: number;
  /** Default: a third of the lease. */
  readonly intervalMs?: number;
  /**
   * Whether the holds of a shard were compared with Postgres in this Redis process (`Reconciler`): a Redis that came back
   * older has holds of stored calls again, and to sweep those is to refund them.
   */
  readonly isReconciled: (shard: number, redisRunId: string) => boolean;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/**
 * Settles the holds of gateways that died: refunded, outcome `abandoned`. It only proposes; the script decides, with
 * Redis's own clock. Any number of sweepers may run.
 *
 * A started sweeper trusts leases only while Redis answers without a gap (see `Steadiness`), and holds only after they were
 * compared with Postgres: holds of a gateway that died are swept within the lease and two rounds, or that long after Redis
 * came back or the sweeper itself was started, if Postgres is there.
 */
export class Sweeper {
  readonly #options: SweeperOptions;
  #timer: NodeJS.Timeout | null = null;
  readonly #steadiness: Steadiness;
  #running: Promise<void> | null = null;
  #swept = 0;
  #leftAlone = 0;
  readonly #damage: DamageLog;
  #failing = false;

  constructor(options: SweeperOptions) {
    this.#options = options;
    this.#steadiness = new Steadiness(options.leaseSeconds);
    this.#damage = new DamageLog(options.log);
  }

  start(): void {
    if (this.#timer !== null) return;
    const intervalMs = this.#options.intervalMs ?? (this.#options.leaseSeconds * 1000) / 3;
    const run = () => {
      this.#running ??= this.#round().finally(() => {
        this.#running = null;
      });
    };
    this.#timer = setInterval(run, intervalMs);
    this.#timer.unref();
    run();
  }

  /** Resolves when the round under way is over, which leaves the shards it has not come to, or after `timeoutMs`. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  /** Holds swept since the start. */
  get swept(): number {
    return this.#swept;
  }

  /** Holds that the last round left alone, because they are damaged or of a newer version. */
  get leftAlone(): number {
    return this.#leftAlone;
  }

  /** Shards and wallets that were found damaged, by what was; counted each time. */
  get damage(): ReadonlyMap<Damage, number> {
    return this.#damage.counts;
  }

  /**
   * Looks at every shard once, and takes leases and holds as they are.
   *
   * @returns number of holds swept
   * @throws when Redis is away, or a shard's own keys are damaged: then all others were swept
   */
  async sweepOnce(): Promise<number> {
    const { swept, damaged } = await this.#sweepAll(BLIND_TRUST);
    if (damaged.length > 0) throw damaged[0];
    return swept;
  }

  /**
   * A few shards at once: one by one each answer woke the process, fifty times a round, which was most of what an idle writer did.
   *
   * @returns number of holds swept, and the errors of shards whose own keys are damaged
   */
  async #sweepAll(trust: Trust): Promise<{ swept: number; damaged: unknown[] }> {
    let [swept, leftAlone] = [0, 0];
    const failures: unknown[] = [];
    const damaged: unknown[] = [];
    for (let first = 0; first < this.#options.keys.shards; first += SHARDS_AT_ONCE) {
      const last = Math.min(first + SHARDS_AT_ONCE, this.#options.keys.shards);
      const shards = Array.from({ length: last - first }, (_, i) => first + i);
      // Before the leases are read: one that is renewed meanwhile is the younger for it.
      const nowMs = await readRedisTime(this.#options.redis);
      this.#steadiness.answered(nowMs);
      const results = await Promise.allSettled(shards.map((shard) => this.#sweepShard(shard, nowMs, trust)));
      for (const [i, result] of results.entries()) {
        if (result.status === 'fulfilled') {
          swept += result.value.swept;
          leftAlone += result.value.leftAlone;
          this.#damage.shardWorks(first + i);
        } else if (isDamage(result.reason)) {
          damaged.push(result.reason);
          this.#damage.found('shard', '', '', first + i);
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

  /** One line when the number changes. */
  #reportLeftAlone(holds: number): void {
    if (holds > 0 && holds !== this.#leftAlone) {
      this.#options.log.warn({ holds }, 'open holds that are damaged or of a newer version are left alone');
    }
    this.#leftAlone = holds;
  }

  async #sweepShard(shard: number, nowMs: number, trust: Trust): Promise<{ swept: number; leftAlone: number }> {
    const { redis, keys } = this.#options;
    const open = keys.open[shard] as string;
    const leases = await this.#readLeases(shard);
    if (!trust.in(shard)) return { swept: 0, leftAlone: 0 };
    const holders = new Set<string>();
    let swept = 0;
    // By name: a scan may name a hold twice.
    const leftAlone = new Set<string>();
    let cursor = '0';
    do {
      const [next, pairs] = (await redis.command('hscan', [open, cursor, 'COUNT', String(SCAN_COUNT)])) as [
        string,
        string[],
      ];
      cursor = next;
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
    } while (cursor !== '0');
    await this.#forgetLeases(shard, leases, holders, nowMs);
    return { swept, leftAlone: leftAlone.size };
  }

  #isCandidate(hold: Candidate, leases: ReadonlyMap<string, number>, nowMs: number): boolean {
    if (hold.tombstone) return nowMs - hold.atMs > TOMBSTONE_MS;
    // None, one that is no time, one of the future: the script decides about these.
    const renewedAt = leases.get(hold.instance) ?? Number.NaN;
    return !(renewedAt <= nowMs) || nowMs - renewedAt > this.#options.leaseSeconds * 1000;
  }

  async #sweepGroup(
    shard: number,
    candidates: readonly Candidate[],
    judgedAtMs: number,
    { redisRunId }: Trust,
  ): Promise<number> {
    const { redis, keys, leaseSeconds } = this.#options;
    const names = [keys.open[shard] as string, keys.lease[shard] as string, keys.usage[shard] as string];
    for (const { accountId } of candidates) names.push(keys.wallet(shard, accountId));
    const args = [String(leaseSeconds * 1000), String(TOMBSTONE_MS), ABANDONED, String(judgedAtMs), redisRunId];
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
    // ioredis makes an object of this reply.
    const fields = (await redis.command('hgetall', [keys.lease[shard] as string])) as Record<string, string>;
    const leases = new Map(Object.entries(fields).map(([instance, at]) => [instance, Number(at)]));
    return leases;
  }

  /** An instance that sleeps this long and comes back renews its lease before it admits anything, so nothing is lost. */
  async #forgetLeases(
    shard: number,
    leases: ReadonlyMap<string, number>,
    holders: ReadonlySet<string>,
    nowMs: number,
  ): Promise<void> {
    const { redis, keys, leaseSeconds } = this.#options;
    const forgetMs = leaseSeconds * 1000 * FORGET_AFTER_BOUNDS;
    const dead = Array.from(leases).filter(([instance, at]) => nowMs - at > forgetMs && !holders.has(instance));
    if (dead.length > 0) {
      await redis.command('hdel', [keys.lease[shard] as string, ...dead.map(([instance]) => instance)]);
    }
  }

  async #look(): Promise<Trust> {
    const { redis, isReconciled } = this.#options;
    const run = await readRedisRun(redis);
    this.#steadiness.reported({ ...run, nowMs: await readRedisTime(redis) });
    return {
      redisRunId: run.runId,
      in: (shard) => this.#timer !== null && this.#steadiness.lasting && isReconciled(shard, run.runId),
    };
  }

  async #round(): Promise<void> {
    const { log } = this.#options;
    try {
      const trust = await this.#look();
      if (this.#steadiness.lasting) await this.#sweepAll(trust);
      this.#failing = false;
    } catch (error) {
      // Whatever keeps the sweeper from its work, as a Redis that refuses all writes, may keep gateways from renewing their leases.
      this.#steadiness.lost();
      if (!this.#failing) log.warn({ err: error }, 'cannot sweep now');
      this.#failing = true;
    }
  }
}

/** The keys of one shard are damaged. All other shards are as they should be, and so is Redis. */
const isDamage = (error: unknown): boolean =>
  isWrongType(error) || (error instanceof Error && error.message.includes('exhausted the last possible ID'));

/** What is believed of a round. */
type Trust = {
  /** The only Redis process to sweep in; '' is any. */
  readonly redisRunId: string;
  /** Asked before a shard's holds are judged; false leaves them for another time. */
  readonly in: (shard: number) => boolean;
};

const BLIND_TRUST: Trust = { redisRunId: '', in: () => true };

type Candidate = {
  readonly usageId: string;
  readonly instance: string;
  readonly accountId: string;
  readonly atMs: number;
  readonly tombstone: boolean;
};

const HOLD = /^(?:v1\t)?\d{1,16}\t[01]\t(\d+)\t([^\t]*)\t([^\t]*)\t[^\t]*\t[^\t]*\t/;
const TOMBSTONE = /^x\t\t(\d+)\t([^\t]*)$/;

/** A hold as batch.lua writes it, or a tombstone, which has no account; null: damaged, or of a newer version. */
function readHold(usageId: string, text: string): Candidate | null {
  const hold = HOLD.exec(text);
  const found = hold ?? TOMBSTONE.exec(text);
  if (found === null) return null;
  const [, at, instance = '', accountId = ''] = found;
  return { usageId, instance, accountId, atMs: Number(at), tombstone: hold === null };
}
