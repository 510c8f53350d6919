import { unavailableError } from '../../errors.ts';
import { Job, type JobOptions } from '../../platform/job.ts';
import type { Sql } from '../../platform/postgres.ts';
import { DamageLog } from '../damage-log.ts';
import { Fence } from '../history/fence.ts';
import { takeDebitScript } from '../scripts.ts';
import { reportDamaged } from './damaged-wallets.ts';
import { type Debit, endDebit, selectBegunDebits } from './debits-sql.ts';
import { MAX_LOADS, WalletDamaged, type WalletLoader, type WalletStores } from './wallets.ts';

/** Outcomes of take-debit.lua. */
const TAKEN = 0;
const REFUSED = 1;
const NOT_LOADED = 2;
const DAMAGED = 3;

/**
 * Interval at which the job looks for debits that were begun but not ended. They are rare, and each look costs an idle installation
 * a query.
 */
const RETRY_MS = 5_000;
/** A debit younger than this is left to the request that began it. An older one's request has answered or failed by then. */
const LEFT_ALONE_SECONDS = 2;
/** Maximum number of debits in one round. There is at most one per account, and the next round goes on after the last account. */
const MAX_DEBITS = 500;
/** Sorts before every account id. */
const FIRST_ACCOUNT = '00000000-0000-0000-0000-000000000000';

type DebitWalletsOptions = WalletStores & {
  readonly sql: Sql;
  readonly hydrator: WalletLoader;
  readonly log: JobOptions['log'];
};

/** How a debit ended, and the wallet's balance when it was asked. */
type EndedDebit = {
  readonly debit: Debit;
  /** Whether this process stored the outcome; false if another had stored it before. */
  readonly isEndedHere: boolean;
  readonly balanceMicros: number;
};

/**
 * Carries out debits that are begun in Postgres:
 *
 *   begun ──take-debit.lua: the wallet decides──► taken or refused in Redis ──one transaction──► taken (and posted) or refused
 *
 * Each step may be repeated by any process. The wallet decides a number once, and the row leaves 'begun' once. If a process dies
 * between two steps, the rounds of the job continue the debit (docs/decisions/0037).
 */
export class DebitWallets extends Job {
  readonly #options: DebitWalletsOptions;
  readonly #fence: Fence;
  readonly #damage: DamageLog;
  #after = FIRST_ACCOUNT;

  constructor(options: DebitWalletsOptions) {
    super({
      everyMs: RETRY_MS,
      firstMs: RETRY_MS,
      log: options.log,
      messages: { failing: 'debits cannot be carried out now', again: 'debits are carried out again' },
    });
    this.#options = options;
    this.#fence = new Fence(options);
    this.#damage = new DamageLog(options.log);
  }

  /**
   * Asks the wallet for its decision, and stores it. Rejects when a store is away or the wallet is damaged. Then the debit stays
   * begun until a round or a repeated request can end it.
   */
  async carryOut(debit: Debit): Promise<EndedDebit> {
    const { outcome, balanceMicros } = await this.#ask(debit);
    return { ...(await endDebit(this.#fence, debit, outcome)), balanceMicros };
  }

  protected override async round(): Promise<void> {
    reportDamaged(await this.#tryLeft(LEFT_ALONE_SECONDS), this.#damage, this.#options.keys);
  }

  /**
   * Runs one round: ends the debits that began at least `ageSeconds` ago. One that cannot be ended does not delay the others.
   *
   * @throws the first failure, after all were tried
   */
  async endLeft(ageSeconds = LEFT_ALONE_SECONDS): Promise<void> {
    const failures = await this.#tryLeft(ageSeconds);
    if (failures.length > 0) throw failures[0];
  }

  async #ask(debit: Debit): Promise<{ outcome: 'taken' | 'refused'; balanceMicros: number }> {
    const { redis, keys, hydrator, sql } = this.#options;
    const { accountId, seq, totalBeforeMicros, amountMicros } = debit;
    const args = [
      keys.wallet(keys.shardOf(accountId), accountId),
      ...[seq, totalBeforeMicros, amountMicros].map(String),
    ];
    for (let loads = 0; loads <= MAX_LOADS; loads++) {
      const [code, balanceMicros] = (await redis.script(takeDebitScript, 1, args)) as [number, number];
      if (code === TAKEN) return { outcome: 'taken', balanceMicros };
      if (code === REFUSED) return { outcome: 'refused', balanceMicros };
      if (code === DAMAGED) throw new WalletDamaged(accountId);
      if (code !== NOT_LOADED) return { outcome: await storedOutcome(sql, debit), balanceMicros };
      await hydrator.loadWallet(accountId);
    }
    throw new Error(`debit ${seq} of ${accountId} cannot be decided: Redis lost its wallet each time it was loaded`);
  }

  async #tryLeft(ageSeconds: number): Promise<unknown[]> {
    const debits = await selectBegunDebits(this.#options.sql, { after: this.#after, ageSeconds, limit: MAX_DEBITS });
    this.#after = debits[MAX_DEBITS - 1]?.accountId ?? FIRST_ACCOUNT;
    // An older Postgres may not know that a debit has ended, or may have another one under its number. A request has just begun its
    // own debit.
    if (debits.length > 0) await this.#fence.check();
    const failures: unknown[] = [];
    for (const debit of debits) {
      if (this.stopping.aborted) break;
      await this.carryOut(debit).catch((error: unknown) => failures.push(error));
    }
    return failures;
  }
}

/**
 * The wallet has decided a later debit, which could not begin before this one had ended; or it has decided a different debit with
 * this number. So Postgres must know the outcome. If it does not, another Postgres had begun that debit and was abandoned: a
 * comparison reports a drift.
 *
 * @throws ApiError `unavailable`: until an operator has ended the drift
 */
async function storedOutcome(sql: Sql, { accountId, seq }: Debit): Promise<'taken' | 'refused'> {
  const [row] = await sql<Pick<Debit, 'state'>[]>`
    SELECT state FROM debits WHERE account_id = ${accountId} AND seq = ${seq}`;
  if (row !== undefined && row.state !== 'begun') return row.state;
  throw unavailableError(
    undefined,
    `The wallet of ${accountId} has a debit that Postgres does not know: compare, and end its drift. Then send the same request again: the amount is taken once at most.`,
  );
}
