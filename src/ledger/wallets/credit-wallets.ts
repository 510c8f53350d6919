import type { Sql } from '../../platform/postgres.ts';
import { overWithin } from '../../platform/timing.ts';
import { DamageLog } from '../damage-log.ts';
import { type RedisRun, readRedisRun } from '../redis-run.ts';
import { applyCreditScript } from '../scripts.ts';
import { MAX_LOADS, WalletDamaged, type WalletLoader, type WalletStores } from './wallets.ts';

/** Outcomes of apply-credit.lua. */
const APPLIED = 0;
const GAP = 1;
const DAMAGED = 3;

/** How often credits that did not reach their wallet are tried again. */
const RETRY_MS = 1_000;
/** Accounts whose credits are made up for in one run. */
const MAX_ACCOUNTS = 500;
const STOP_MS = 2_000;
/**
 * Credits applied this close to a restart of Redis are applied again at once. That is for speed: whatever else it lost is
 * found by the reconciliation, of any age.
 */
const DOUBTFUL_MINUTES = 10;

/** Before all account ids. */
const FIRST_ACCOUNT = '00000000-0000-0000-0000-000000000000';

/** Credits under way at the same time while catching up. */
const PARALLEL = 50;

export type CreditToApply = { readonly accountId: string; readonly seq: number; readonly amountMicros: number };

export type CreditWalletsOptions = WalletStores & {
  readonly sql: Sql;
  readonly hydrator: WalletLoader;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
};

/** Carries credits from Postgres into live wallets: in the order of their numbers, each at most once. */
export class CreditWallets {
  readonly #options: CreditWalletsOptions;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #stopping = false;
  /** Where the last run ended: should there be more accounts than fit in one, none of them starves the others. */
  #after = FIRST_ACCOUNT;
  /** Which Redis process the wallets were last seen in. */
  #redisRun = '';
  /** Of the present connection to Redis; null: not asked yet. */
  #runOfConnection: RedisRun | null = null;
  #connections = 0;
  #failing = false;
  readonly #damage: DamageLog;

  constructor(options: CreditWalletsOptions) {
    this.#options = options;
    this.#damage = new DamageLog(options.log);
    options.redis.onReady(() => {
      this.#connections++;
      this.#runOfConnection = null;
    });
  }

  /**
   * Adds a stored credit to the wallet, and those before it that are missing. Idempotent. Rejects when Redis is away;
   * `start()` makes up for it.
   */
  async apply({ accountId, seq, amountMicros }: CreditToApply): Promise<void> {
    for (let attempt = 0; attempt <= MAX_LOADS; attempt++) {
      const outcome = await this.#applyInOrder(accountId, seq, amountMicros);
      if (outcome === APPLIED) return this.#markApplied(accountId, seq);
      if (outcome === DAMAGED) throw new WalletDamaged(accountId);
      // Somebody may be loading what Postgres said before the credit was committed: be sure that it is in.
      await this.#options.hydrator.loadWallet(accountId);
    }
    throw new Error(`credit ${seq} of ${accountId} cannot be applied: its wallet is lost as fast as it is loaded`);
  }

  /** From now on applies, every second, the credits that never reached their wallet. One run at a time. */
  start(): void {
    this.#stopping = false;
    this.#timer ??= setInterval(() => {
      this.#running ??= this.#retry().finally(() => {
        this.#running = null;
      });
    }, RETRY_MS);
    this.#timer.unref();
  }

  /** Ends with the credits under way, after `timeoutMs` without them: each is applied at most once, now or next time. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    this.#stopping = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  /**
   * Applies, once, the credits that are not known to be in their wallets. An account whose credit cannot be applied keeps
   * no other waiting.
   *
   * @returns number of accounts looked at
   * @throws the first failure, after all of them were tried
   */
  async applyMissing(): Promise<number> {
    const { looked, failures } = await this.#tryMissing();
    if (failures.length > 0) throw failures[0];
    return looked;
  }

  /**
   * Which Redis process answers, and for how long it has run. Once its restart was looked into that is not asked again on the same
   * connection, which cannot outlive its process.
   */
  async #currentRun(): Promise<RedisRun> {
    const known = this.#runOfConnection;
    if (known !== null && known.runId === this.#redisRun) return known;
    const connection = this.#connections;
    const run = await readRedisRun(this.#options.redis);
    if (connection === this.#connections) this.#runOfConnection = run;
    return run;
  }

  async #tryMissing(): Promise<{ looked: number; failures: readonly unknown[] }> {
    const { runId, uptimeSeconds } = await this.#currentRun();
    const failures: unknown[] = [];
    let looked = 0;
    if (runId !== this.#redisRun) {
      const youngest = await this.#selectDoubtful(uptimeSeconds);
      failures.push(
        ...(await this.#tryAll(youngest, ({ accountId, seq, amountMicros }) =>
          this.#applyInOrder(accountId, seq, amountMicros),
        )),
      );
      looked += youngest.length;
      if (failures.length === 0 && !this.#stopping) this.#redisRun = runId;
    }
    const missing = await this.#selectMissing();
    failures.push(...(await this.#tryAll(missing, (credit) => this.apply(credit))));
    looked += missing.length;
    return { looked, failures };
  }

  /** The last missing credit of each account: applying it brings those before it along. */
  async #selectMissing(): Promise<CreditToApply[]> {
    const credits = await this.#options.sql<CreditToApply[]>`
      SELECT DISTINCT ON (account_id) account_id AS "accountId", seq, amount AS "amountMicros" FROM credits
      WHERE applied_at IS NULL AND account_id > ${this.#after} ORDER BY account_id, seq DESC LIMIT ${MAX_ACCOUNTS}`;
    const last = credits[MAX_ACCOUNTS - 1];
    this.#after = last === undefined ? FIRST_ACCOUNT : last.accountId;
    return credits;
  }

  /**
   * Redis restarted: it may have lost credits of its last moments, marked as applied though they are. A wallet that is
   * not loaded will be loaded with all of them.
   */
  async #selectDoubtful(uptimeSeconds: number): Promise<CreditToApply[]> {
    return this.#options.sql<CreditToApply[]>`
      SELECT DISTINCT ON (account_id) account_id AS "accountId", seq, amount AS "amountMicros" FROM credits
      WHERE abs(extract(epoch FROM now() - applied_at) - ${uptimeSeconds}) < ${DOUBTFUL_MINUTES * 60}
      ORDER BY account_id, seq DESC`;
  }

  /** Runs `work` for all credits, a bounded number at a time, until it is told to stop. @returns the failures */
  async #tryAll(credits: readonly CreditToApply[], work: (credit: CreditToApply) => Promise<unknown>) {
    const failures: unknown[] = [];
    for (let from = 0; from < credits.length && !this.#stopping; from += PARALLEL) {
      const results = await Promise.allSettled(credits.slice(from, from + PARALLEL).map(work));
      for (const result of results) if (result.status === 'rejected') failures.push(result.reason);
    }
    return failures;
  }

  /** Applies the credit after those before it that the wallet lacks. @returns the outcome of the last one that was tried */
  async #applyInOrder(accountId: string, seq: number, amountMicros: number): Promise<number> {
    const [outcome, last] = await this.#run(accountId, seq, amountMicros);
    if (outcome !== GAP) return outcome;
    const { sql } = this.#options;
    const credits = await sql<{ seq: number; amountMicros: number }[]>`
      SELECT seq, amount AS "amountMicros" FROM credits
      WHERE account_id = ${accountId} AND seq > ${last} AND seq <= ${seq} ORDER BY seq`;
    for (const credit of credits) {
      const [next] = await this.#run(accountId, credit.seq, credit.amountMicros);
      // Those after it would only be told that this one is missing.
      if (next !== APPLIED) return next;
    }
    return credits.length > 0 ? APPLIED : GAP;
  }

  async #run(accountId: string, seq: number, amountMicros: number): Promise<[outcome: number, last: number]> {
    const { redis, keys } = this.#options;
    const args = [keys.wallet(keys.shardOf(accountId), accountId), String(seq), String(amountMicros)];
    return (await redis.script(applyCreditScript, 1, args)) as [number, number];
  }

  async #markApplied(accountId: string, seq: number): Promise<void> {
    const { sql } = this.#options;
    await sql`
      UPDATE credits SET applied_at = now() WHERE account_id = ${accountId} AND seq <= ${seq} AND applied_at IS NULL`;
  }

  async #retry(): Promise<void> {
    const { log, keys } = this.#options;
    try {
      const { failures } = await this.#tryMissing();
      // A damaged wallet stays so until an operator repairs it, and may not hide what happens to others until then.
      for (const error of failures) {
        if (!(error instanceof WalletDamaged)) throw error;
        this.#damage.found('wallet', error.accountId, '', keys.shardOf(error.accountId));
      }
      if (this.#failing) log.info({}, 'credits reach their wallets again');
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.warn({ err: error }, 'credits cannot be applied to their wallets now');
      this.#failing = true;
    }
  }
}
