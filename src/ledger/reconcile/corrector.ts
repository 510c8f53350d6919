import { randomUUID } from 'node:crypto';
import { ApiError, unavailableError } from '../../errors.ts';
import { limit } from '../../platform/limit.ts';
import { sqlState, type Tx } from '../../platform/postgres.ts';
import { isWrongType } from '../../platform/redis.ts';
import { Fence, type MoneyTx, refusalByFence } from '../history/fence.ts';
import { type MovedBalance, movedBalance } from '../posting.ts';
import { readRedisRun } from '../redis-run.ts';
import {
  type Change,
  type Correction,
  correctBooks,
  lockCorrection,
  type NewCorrection,
  selectCorrection,
  storeCorrection,
} from './corrections-sql.ts';
import { type AccountState, type Comparison, compare, knowsItsDebits } from './identity.ts';
import { insertRepair, selectBegunRepairs } from './reconcile-sql.ts';
import { refusalOf } from './refusal.ts';
import { describe, Repairer, repairArgs } from './repairer.ts';
import {
  type Permit,
  type Reading,
  type ReconcileStores,
  RedisReplaced,
  ShardView,
  StreamTooLong,
} from './shard-view.ts';

/**
 * How often a correction reads the account and tries to change its wallet. A debit that was under way, or a Redis that lost data,
 * may remove the ticket of a reading; no other debit begins meanwhile.
 */
const MAX_LOOKS = 3;

/**
 * Who decided. `record` is called in the transaction that first stores the correction. `moved` is the balance that the correction
 * changes: `wallet` in Redis, or `settled` in Postgres; null: it moves no money.
 */
export type Operator = {
  readonly madeBy: string;
  readonly record: (tx: Tx, correction: Omit<Correction, 'createdAt'>, moved: MovedBalance | null) => Promise<void>;
};

/** `created`: false if it was made before, with the same reference. */
type Corrected = { readonly correction: Correction; readonly created: boolean };

/** One attempt, with the flush lock of the account's shard to itself. */
type Attempt = {
  readonly wanted: NewCorrection;
  readonly operator: Operator;
  readonly shard: number;
  readonly ticket: string;
  /** The account's status; null: Postgres does not know the account. */
  readonly status: string | null;
};

/** An account as an attempt has read it. */
type Read = { readonly state: AccountState; readonly comparison: Comparison; readonly permit: Permit };

/**
 * Ends drifts that the comparison may not repair, as an operator decides:
 *
 *   account, then flush lock, exclusive ──► read as the comparison does ──► postgres is believed: record, then repair-wallet.lua, then its outcome
 *                                                        └──► redis is believed: the books change in the transaction of the lock
 *
 * The locks keep out everything that could make the reading wrong: flushes, loads, repairs and other corrections. Calls go on, and
 * change no drift; credits and debits of the account wait. A process that dies has changed nothing, or has left a repair whose
 * outcome the wallet tells (`Repairer.resolve`). A second attempt takes out only what is still wrong by then, so it never counts
 * twice.
 */
export class Corrector {
  readonly #stores: ReconcileStores;
  readonly #fence: Fence;
  readonly #repairer: Repairer;
  /** Maximum corrections at the same time: each needs up to two connections to Postgres. */
  readonly #inTurn = limit(1);

  constructor(stores: ReconcileStores) {
    this.#stores = stores;
    this.#fence = new Fence(stores);
    this.#repairer = new Repairer(stores);
  }

  /**
   * @throws ApiError `conflict` when the reference belongs to another correction, when there is no drift, or when it cannot be ended this
   *   way; `not_found` when neither store knows the account; `unavailable` when the shard cannot be compared now
   */
  async correct(wanted: NewCorrection, operator: Operator): Promise<Corrected> {
    const made = await this.#stores.sql.begin((tx) => findMade(tx, wanted));
    if (made !== null) return made;
    return this.#inTurn(() => this.#correctNow(wanted, operator).catch(explained));
  }

  async #correctNow(wanted: NewCorrection, operator: Operator): Promise<Corrected> {
    const { sql, redis: all, keys } = this.#stores;
    const { accountId } = wanted;
    const shard = keys.shardOf(accountId);
    const redis = all.shard(shard);
    const begun = (await selectBegunRepairs(sql)).get(accountId) ?? [];
    const view = new ShardView({ sql, redis, keys }, shard, (await readRedisRun(redis)).dataId);
    await view.readAhead();
    return this.#fence.begin([accountId], async (tx) => {
      const status = await lockAccount(tx, accountId);
      for (let looks = 0; looks < MAX_LOOKS; looks++) {
        const attempt = { wanted, operator, shard, ticket: randomUUID(), status };
        const reading = await view.readAlone(tx, accountId, attempt.ticket);
        const corrected = await this.#try(tx, attempt, reading, begun);
        if (corrected !== 'again') return corrected;
      }
      throw unavailableError(undefined, 'The wallet was changed at the same moment. Send the same request again.');
    });
  }

  async #try(tx: MoneyTx, attempt: Attempt, reading: Reading, begun: readonly number[]): Promise<Corrected | 'again'> {
    const { wanted } = attempt;
    const [state] = reading.states;
    if (state !== undefined) await this.#repairer.resolve(begun, state.wallet);
    const made = await findMade(tx, wanted);
    if (made !== null) return made;
    const read = judge(attempt, reading);
    return wanted.believe === 'postgres' ? this.#changeWallet(attempt, read) : changeBooks(tx, attempt, read);
  }

  /** The record comes first, in a separate transaction, so that it exists whatever happens to this process. */
  async #changeWallet(attempt: Attempt, { state, comparison, permit }: Read): Promise<Corrected | 'again'> {
    const { sql } = this.#stores;
    const { wanted, operator, shard, ticket } = attempt;
    const numbers = numbersAhead(state);
    const { before, after, changeMicros } = describe(comparison);
    const repair = {
      accountId: wanted.accountId,
      madeBy: operator.madeBy,
      reason: wanted.reason,
      before: { ...before, ...numbers.before },
      after: { ...after, ...numbers.after },
      changeMicros,
    };
    const { repairId, correction } = await sql.begin(async (tx) => {
      const id = await insertRepair(tx, repair);
      const { expectedMicros, driftMicros } = comparison;
      const moved = driftMicros === 0 ? null : movedBalance('wallet', expectedMicros, -driftMicros);
      return { repairId: id, correction: await store(tx, attempt, comparison, { repairId: id }, moved) };
    });
    const args = repairArgs({ comparison, reason: wanted.reason, permit }, ticket, repairId);
    const isMade = await this.#repairer.change(shard, wanted.accountId, repairId, [...args, ...numbers.changes]);
    return isMade ? { correction, created: true } : 'again';
  }
}

/**
 * Keeps debits of the account from beginning. It is taken before the flush lock: the closing of an account keeps this lock while
 * its wallet is loaded, which needs the flush lock.
 *
 * @returns the status of the account; null when Postgres does not know it
 */
async function lockAccount(tx: Tx, accountId: string): Promise<string | null> {
  const rows = await tx<{ status: string }[]>`SELECT status FROM accounts WHERE id = ${accountId} FOR NO KEY UPDATE`;
  return rows[0]?.status ?? null;
}

/** @throws ApiError `conflict` when the reference belongs to another correction */
async function findMade(tx: Tx, wanted: NewCorrection): Promise<Corrected | null> {
  const stored = await selectCorrection(tx, wanted.reference);
  if (stored === null) return null;
  const isSame = (['accountId', 'believe', 'reason'] as const).every((name) => stored[name] === wanted[name]);
  if (!isSame) throw ofAnother();
  const { isMade, ...correction } = stored;
  if (!isMade) return null;
  await lockCorrection(tx, wanted.reference);
  return { correction, created: false };
}

const ofAnother = () => new ApiError('conflict', 'reference: belongs to another correction.');

/** @throws ApiError `conflict` or `not_found`, when there is nothing to correct, or the decision cannot be carried out */
function judge({ wanted, status }: Attempt, { states: [state], historyOf, permit }: Reading): Read {
  if (state === undefined) {
    if (status === null) throw new ApiError('not_found', 'There is no such account.');
    throw new ApiError('conflict', 'The wallet of this account is not in Redis, so it has no drift.');
  }
  if (wanted.believe === 'redis' && (status === null || status === 'closed')) {
    const why = status === null ? 'Postgres does not know this account' : 'this account is closed';
    throw new ApiError('conflict', `believe: ${why}. Believe postgres.`);
  }
  const comparison = compare(state);
  const refusal = refusalOf(wanted, state, comparison, historyOf(wanted.accountId));
  if (refusal !== null) throw new ApiError('conflict', refusal);
  return { state, comparison, permit };
}

async function changeBooks(tx: MoneyTx, attempt: Attempt, { comparison }: Read): Promise<Corrected> {
  const { journalId, settled } = await correctBooks(tx, { ...attempt.wanted, ...found(attempt, comparison) });
  return { correction: await store(tx, attempt, comparison, { journalId }, settled), created: true };
}

const found = (
  { operator: { madeBy } }: Attempt,
  { driftMicros, freeDrifts, budgetDrifts, storedHolds }: Comparison,
) => ({
  madeBy,
  driftMicros,
  freeDrifts,
  budgetDrifts,
  storedHolds: storedHolds.length,
});

async function store(
  tx: Tx,
  attempt: Attempt,
  comparison: Comparison,
  change: Change,
  moved: MovedBalance | null,
): Promise<Correction> {
  const correction = { ...attempt.wanted, ...found(attempt, comparison) };
  const stored = await storeCorrection(tx, correction, change);
  if (stored === null) throw ofAnother();
  if (stored.isNew) await attempt.operator.record(tx, correction, moved);
  return { ...correction, createdAt: stored.createdAt };
}

type Numbers = { readonly before: object; readonly after: object; readonly changes: readonly string[] };

/**
 * What a wallet that is ahead of Postgres must lose in addition to money. Otherwise the next credits and debits, which get these
 * numbers again, would count as already carried out.
 */
function numbersAhead({ wallet, settled }: AccountState): Numbers {
  const wrong: (readonly [field: string, had: number, has: number])[] = [];
  if (wallet.creditSeq > settled.creditSeq) wrong.push(['credit_seq', wallet.creditSeq, settled.creditSeq]);
  if (!knowsItsDebits(wallet, settled)) {
    wrong.push(['debit_seq', wallet.debitSeq, settled.debitSeq]);
    wrong.push(['debited', wallet.debitedMicros, settled.debitedMicros]);
  }
  return {
    before: Object.fromEntries(wrong.map(([field, had]) => [field, had])),
    after: Object.fromEntries(wrong.map(([field, , has]) => [field, has])),
    changes: wrong.flatMap(([field, had, has]) => [field, String(has - had)]),
  };
}

const LOCK_NOT_AVAILABLE = '55P03';

/** Says why the shard cannot be compared now. */
function explained(error: unknown): never {
  // If a reading finds this, it also does so before anything is changed.
  const refusal = refusalByFence(error);
  if (refusal !== null) throw refusal;
  if (isWrongType(error)) {
    throw new ApiError(
      'conflict',
      "The holds or the stream of this account's shard are damaged in Redis: repair them first.",
    );
  }
  if (error instanceof StreamTooLong) {
    throw unavailableError(error, 'The writer is behind with the shard of this account. Send the same request again.');
  }
  if (error instanceof RedisReplaced || sqlState(error) === LOCK_NOT_AVAILABLE) {
    throw unavailableError(error, 'The shard of this account cannot be compared now. Send the same request again.');
  }
  throw error;
}
