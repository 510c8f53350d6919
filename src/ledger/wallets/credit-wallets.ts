import { Job, type JobOptions } from '../../platform/job.ts';
import type { Sql } from '../../platform/postgres.ts';
import { DamageLog } from '../damage-log.ts';
import { Fence } from '../history/fence.ts';
import { type RedisRun, readAllRuns } from '../redis-run.ts';
import { applyCreditScript } from '../scripts.ts';
import { reportDamaged } from './damaged-wallets.ts';
import { MAX_LOADS, WalletDamaged, type WalletLoader, type WalletStores } from './wallets.ts';

/** Outcomes of apply-credit.lua. */
const APPLIED = 0;
const GAP = 1;
const DAMAGED = 3;

/** How often credits are looked for that did not reach their wallet because a process died, or Redis was away. */
const LOOK_MS = 5_000;
/** Pause after a round that found any, and after a failure. */
const RETRY_MS = 1_000;
/** Maximum number of accounts whose missing credits one round applies; the next round goes on with the accounts after them. */
const MAX_ACCOUNTS = 500;
/**
 * Redis may have lost credits that were applied shortly before or after it restarted. Those applied within this time of the
 * restart are applied again at once. This only saves time: the reconciliation finds lost credits of any age.
 */
const DOUBTFUL_MINUTES = 10;

/** Sorts before every account id. */
const FIRST_ACCOUNT = '00000000-0000-0000-0000-000000000000';

/** Maximum number of credits applied concurrently in a round. */
const PARALLEL = 50;

/** A credit, or a refund of a call. `budgets` are those whose spending it lowers (`budgetsText`); null: none. */
export type CreditToApply = {
  readonly accountId: string;
  readonly seq: number;
  readonly amountMicros: number;
  readonly budgets: string | null;
};

type Run = Pick<RedisRun, 'dataId' | 'uptimeSeconds'>;

type CreditWalletsOptions = WalletStores & {
  readonly sql: Sql;
  readonly hydrator: WalletLoader;
  readonly log: JobOptions['log'];
};

/**
 * Brings credits from Postgres into loaded wallets, in the order of their numbers and each at most once. Once started, it looks
 * every five seconds, and when Redis is back, for credits that are not known to be in their wallets.
 */
export class CreditWallets extends Job {
  readonly #options: CreditWalletsOptions;
  readonly #fence: Fence;
  readonly #damage: DamageLog;
  /** The last account of the last round. The next round starts after it, so that no account starves if a round cannot take all. */
  #after = FIRST_ACCOUNT;
  /** `dataId` of the Redis for which all credits of `#selectDoubtful` have been applied again; '': none yet. */
  #redisRun = '';
  /** The Redis process at the other end of the present connection; null: not asked since the connection was made. */
  #runOfConnection: Run | null = null;
  #connections = 0;

  constructor(options: CreditWalletsOptions) {
    super({
      everyMs: LOOK_MS,
      firstMs: RETRY_MS,
      retryMs: RETRY_MS,
      log: options.log,
      messages: {
        failing: 'credits cannot be applied to their wallets now',
        again: 'credits reach their wallets again',
      },
    });
    this.#options = options;
    this.#fence = new Fence(options);
    this.#damage = new DamageLog(options.log);
    options.redis.onReady(() => {
      this.#connections++;
      this.#runOfConnection = null;
      this.wake();
    });
  }

  /**
   * Adds a stored credit to the wallet, after any earlier credits that the wallet lacks. Idempotent. Rejects when Redis is
   * away; then a round applies the credit later.
   */
  async apply(credit: CreditToApply): Promise<void> {
    const { accountId, seq } = credit;
    for (let attempt = 0; attempt <= MAX_LOADS; attempt++) {
      const outcome = await this.#applyInOrder(credit);
      if (outcome === APPLIED) return this.#markApplied(accountId, seq);
      if (outcome === DAMAGED) throw new WalletDamaged(accountId);
      // A load already under way may have read Postgres before the credit was committed. The load requested here begins later, so
      // it includes the credit.
      await this.#options.hydrator.loadWallet(accountId);
    }
    throw new Error(`credit ${seq} of ${accountId} cannot be applied: Redis lost its wallet each time it was loaded`);
  }

  protected override async round(): Promise<void> {
    const { looked, failures } = await this.#tryMissing();
    if (looked > 0) this.nextIn(RETRY_MS);
    reportDamaged(failures, this.#damage, this.#options.keys);
  }

  /**
   * Runs one round: applies the credits that are not known to be in their wallets. A credit that cannot be applied does not
   * delay other accounts.
   *
   * @returns number of accounts looked at
   * @throws the first failure, after all these credits were tried
   */
  async applyMissing(): Promise<number> {
    const { looked, failures } = await this.#tryMissing();
    if (failures.length > 0) throw failures[0];
    return looked;
  }

  /**
   * Which Redis process answers, and for how long it has run. After the doubtful credits of this process were applied again, Redis
   * is asked only once per connection, because a connection cannot outlive its Redis process. It may outlive the data, if the
   * process is a replica for a while: the reconciliation then finds the lost credits.
   */
  async #currentRun(): Promise<Run> {
    const known = this.#runOfConnection;
    if (known !== null && known.dataId === this.#redisRun) return known;
    const connection = this.#connections;
    const run = await readAllRuns(this.#options.redis, this.#options.keys.shards);
    if (connection === this.#connections) this.#runOfConnection = run;
    return run;
  }

  async #tryMissing(): Promise<{ looked: number; failures: readonly unknown[] }> {
    const { dataId, uptimeSeconds } = await this.#currentRun();
    const failures: unknown[] = [];
    let looked = 0;
    if (dataId !== this.#redisRun) {
      const youngest = await this.#selectDoubtful(uptimeSeconds);
      if (youngest.length > 0) await this.#fence.check();
      failures.push(...(await this.#tryAll(youngest, (credit) => this.#applyInOrder(credit))));
      looked += youngest.length;
      if (failures.length === 0 && !this.stopping.aborted) this.#redisRun = dataId;
    }
    const missing = await this.#selectMissing();
    // An older Postgres may have a different credit under a number. A request has just stored its own, behind the fence.
    if (missing.length > 0) await this.#fence.check();
    failures.push(...(await this.#tryAll(missing, (credit) => this.apply(credit))));
    looked += missing.length;
    return { looked, failures };
  }

  /** The last missing credit of each account: applying it also applies the earlier ones that are missing. */
  async #selectMissing(): Promise<CreditToApply[]> {
    const credits = await this.#options.sql<CreditToApply[]>`
      SELECT DISTINCT ON (account_id) account_id AS "accountId", seq, amount AS "amountMicros", budgets FROM credits
      WHERE applied_at IS NULL AND account_id > ${this.#after} ORDER BY account_id, seq DESC LIMIT ${MAX_ACCOUNTS}`;
    const last = credits[MAX_ACCOUNTS - 1];
    this.#after = last === undefined ? FIRST_ACCOUNT : last.accountId;
    return credits;
  }

  /**
   * The last credit of each account that was applied within `DOUBTFUL_MINUTES` of Redis's start. Redis may have lost it, although
   * it is marked as applied. If the wallet is not loaded, there is nothing to do: a load brings all its credits.
   */
  async #selectDoubtful(uptimeSeconds: number): Promise<CreditToApply[]> {
    return this.#options.sql<CreditToApply[]>`
      SELECT DISTINCT ON (account_id) account_id AS "accountId", seq, amount AS "amountMicros", budgets FROM credits
      WHERE abs(extract(epoch FROM now() - applied_at) - ${uptimeSeconds}) < ${DOUBTFUL_MINUTES * 60}
      ORDER BY account_id, seq DESC`;
  }

  /** Calls `work` for all credits, `PARALLEL` at a time, until the job is stopped. @returns the failures */
  async #tryAll(credits: readonly CreditToApply[], work: (credit: CreditToApply) => Promise<unknown>) {
    const failures: unknown[] = [];
    for (let from = 0; from < credits.length && !this.stopping.aborted; from += PARALLEL) {
      const results = await Promise.allSettled(credits.slice(from, from + PARALLEL).map(work));
      for (const result of results) if (result.status === 'rejected') failures.push(result.reason);
    }
    return failures;
  }

  /** Applies the earlier credits that the wallet lacks, then this one. @returns the outcome of the last credit tried */
  async #applyInOrder(credit: CreditToApply): Promise<number> {
    const { accountId, seq } = credit;
    const [outcome, last] = await this.#tryOne(credit);
    if (outcome !== GAP) return outcome;
    const { sql } = this.#options;
    const credits = await sql<CreditToApply[]>`
      SELECT account_id AS "accountId", seq, amount AS "amountMicros", budgets FROM credits
      WHERE account_id = ${accountId} AND seq > ${last} AND seq <= ${seq} ORDER BY seq`;
    for (const earlier of credits) {
      const [next] = await this.#tryOne(earlier);
      // The wallet still lacks this credit, so the script would refuse every later one as GAP.
      if (next !== APPLIED) return next;
    }
    return credits.length > 0 ? APPLIED : GAP;
  }

  async #tryOne({ accountId, seq, amountMicros, budgets }: CreditToApply): Promise<[outcome: number, last: number]> {
    const { redis, keys } = this.#options;
    const args = [keys.wallet(keys.shardOf(accountId), accountId), String(seq), String(amountMicros), budgets ?? ''];
    return (await redis.script(applyCreditScript, 1, args)) as [number, number];
  }

  async #markApplied(accountId: string, seq: number): Promise<void> {
    const { sql } = this.#options;
    await sql`
      UPDATE credits SET applied_at = now() WHERE account_id = ${accountId} AND seq <= ${seq} AND applied_at IS NULL`;
  }
}
