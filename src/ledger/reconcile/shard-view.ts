import { olderPostgres, type Sql, type Tx } from '../../platform/postgres.ts';
import type { RedisStore } from '../../platform/redis.ts';
import { CHILD_FIELD, freeField, type RedisKeys } from '../../platform/redis-keys.ts';
import { type Judged, judgeShards, selectLeftInDoubt, storeDoubt } from '../history/histories-sql.ts';
import { historyOfAccount, isInDoubt, type ShardHistory } from '../history/judge.ts';
import { markText, readMark, seeShards } from '../history/marks.ts';
import { FLUSH_LOCK } from '../locks.ts';
import { isBeforeHorizon, readHorizonMs } from '../retention/horizon.ts';
import { compareWalletsScript } from '../scripts.ts';
import { budgetsOfHold } from '../usage-event.ts';
import type { RawEntry } from '../writing/stream.ts';
import type { AccountState, Hold, Settled, Spending, StreamedCall, Wallet } from './identity.ts';
import { selectRejectedIds, selectStored } from './reconcile-sql.ts';
import { type LastNumbers, selectLastNumbers, selectSettled } from './settled-sql.ts';
import { WaitingCalls } from './waiting-calls.ts';

export type ReconcileStores = { readonly sql: Sql; readonly redis: RedisStore; readonly keys: RedisKeys };

/** Maximum number of stream entries in one reply. A longer one would delay calls in Redis. */
export const STREAM_PAGE = 1_000;
/**
 * A shard with more events than this in its stream is not compared yet: the writer is behind, as after an outage. Reading these
 * events would take the writer's process 4 µs each, a third of the time for storing them, and storing them is more urgent. At 2 500
 * calls/s in a shard, the maximum of a Redis, some 1 250 wait.
 */
const MAX_WAITING = 10_000;
/**
 * Maximum number of stream entries that a comparison keeps in memory, at about 300 bytes each. If more arrive meanwhile, it ends.
 */
const MAX_EVENTS = 100_000;
const LOCK_WAIT_MS = 2_000;
/**
 * Postgres ends the transaction of a process that sends no query for this long (perhaps because the process is suspended), and with
 * it the flush lock. After that, data read under the lock must not be used for a repair: see `validUntilMs`.
 */
const LOCK_LIFE_MS = 5_000;

/** The stream has too many entries to compare the shard now: the writer is behind. */
export class StreamTooLong extends Error {
  constructor() {
    super('too many events wait to be stored');
  }
}

/** Redis has other data than when the reading began, so parts of it belong to two different states. */
export class RedisReplaced extends Error {
  constructor() {
    super('redis restarted or was replaced while it was compared');
  }
}

/** `waiting`: maximum events that wait when a comparison begins. `kept`: maximum events that it keeps in memory. */
export type StreamBounds = { readonly waiting: number; readonly kept: number };

/** Conditions for scripts that rely on a reading: until when they may do so (ms, Redis's clock), and which marks Redis may have. */
export type Permit = { readonly validUntilMs: number; readonly marks: readonly [seen: string, lastFlush: string] };

/** What Postgres says about the doubt about a shard. */
type Doubt = {
  /** The history of the shard. It does not apply to accounts that are in doubt by themselves. */
  readonly historyOf: (accountId: string) => ShardHistory;
  /** The ids named by events in `rejected_events`. They are read only if an account is in doubt. */
  readonly rejected: ReadonlySet<string>;
};

/** Accounts at one instant. */
export type Reading = Doubt & { readonly states: AccountState[]; readonly permit: Permit };

/** What Postgres knows about accounts, and what Redis must have for this to count. */
export type NumbersRead = Doubt & {
  readonly numbers: LastNumbers;
  readonly marks: Permit['marks'];
};

/**
 * Reads accounts of one shard at one instant, in Redis and in Postgres.
 *
 *   read the stream, page by page ──► lock ──► wallets, holds, the rest of the stream (one script) ──► Postgres ──► unlock
 *
 * Events read before Redis restarted prove nothing about its present wallets: the restarted Redis may have lost those events. So
 * the script also says whether it still has the same data (`RedisRun`), and earlier readings of the stream count only while their
 * entries are still there (`WaitingCalls`). If Redis loses data after the script, the ticket prevents a repair (repair-wallet.lua).
 *
 * The shard's flush lock prevents events from being stored between the script and the reading of Postgres. It is taken for one page
 * of accounts at a time, and it is shared, so that wallets can be loaded at the same time. Events that were read before the lock
 * was taken may be stored by now; Postgres tells which. Events that have been deleted from the stream are forgotten at the next
 * script, so that a long run keeps only those that wait to be stored.
 */
export class ShardView {
  readonly #stores: ReconcileStores;
  readonly #shard: number;
  readonly #dataId: string;
  readonly #bounds: StreamBounds;
  readonly #mayBeOlder: boolean;
  readonly #waiting: WaitingCalls;
  /**
   * False if no account was in doubt at the beginning. An account that another comparison leaves in doubt meanwhile is seen by the
   * next one.
   */
  #mayHaveLeft = true;

  /**
   * @param dataId of the Redis that is compared (`RedisRun`), read before anything else
   * @param mayBeOlder whether Postgres may be older than Redis: the reading must then not be used for repairs
   */
  constructor(
    stores: ReconcileStores,
    shard: number,
    dataId: string,
    bounds: Partial<StreamBounds> = {},
    { mayBeOlder = false } = {},
  ) {
    this.#stores = stores;
    this.#shard = shard;
    this.#dataId = dataId;
    this.#bounds = { waiting: MAX_WAITING, kept: MAX_EVENTS, ...bounds };
    this.#mayBeOlder = mayBeOlder;
    this.#waiting = new WaitingCalls(shard);
  }

  /** Reads the stream up to its present end. @throws StreamTooLong */
  async readAhead(): Promise<void> {
    const { redis, keys } = this.#stores;
    const waiting = Number(await redis.command('xlen', [keys.usage[this.#shard] as string]));
    if (waiting > this.#bounds.waiting) throw new StreamTooLong();
    await this.#readRedis([], '');
  }

  /**
   * Looks at the shard before comparing any of it. Data that Postgres did not know are doubted from now on.
   *
   * @throws RedisReplaced; and when Postgres is older than Redis: then it says nothing about wallets
   */
  async begin(): Promise<{ readonly history: ShardHistory; readonly hasLeftInDoubt: boolean }> {
    const { redis, keys } = this.#stores;
    return this.#locked(async (tx) => {
      const { seen } = await seeShards(redis, keys, [this.#shard]);
      const judged = await judgeShards(tx.unsafe, seen);
      const { history, verdict } = this.#accept(judged);
      // Known doubt is already stored, and a commit that wrote nothing does not wait for the disk.
      if (verdict === 'redis may have changed') await storeDoubt(tx.unsafe, judged);
      this.#mayHaveLeft = (await selectLeftInDoubt(tx.unsafe, this.#shard)).size > 0;
      return { history, hasLeftInDoubt: this.#mayHaveLeft };
    });
  }

  #accept(judged: ReadonlyMap<number, Judged>): Judged {
    const its = judged.get(this.#shard) as Judged;
    if (its.verdict === 'postgres is older' && !this.#mayBeOlder) throw olderPostgres([this.#shard]);
    if (its.seen.dataId !== this.#dataId) throw new RedisReplaced();
    return its;
  }

  /**
   * Calls `work` with the accounts whose wallets are loaded. Until `work` resolves, no event of the shard is stored.
   *
   * @param ticket left in the wallets, so that a repair can tell whether they are unchanged since (repair-wallet.lua)
   * @throws RedisReplaced, StreamTooLong; and when Postgres is older than Redis
   */
  async read<T>(accountIds: readonly string[], work: (reading: Reading) => Promise<T>, ticket = ''): Promise<T> {
    return this.#locked(async (tx) => work(await this.#readLocked(tx, accountIds, ticket)));
  }

  /**
   * Calls `work`, for each part of the accounts, with the data that decide whether their wallets may be dropped. Until all have
   * resolved, no event of the shard is stored. While one part is worked on, Postgres looks up the next one: this halves the time
   * for which the flush lock is held.
   *
   * @param before run before `work`, on the same connection, because a program may have no second one
   * @throws RedisReplaced; and when Postgres is older than Redis
   */
  async readNumbers<T>(
    parts: readonly (readonly string[])[],
    before: (tx: Tx) => Promise<void>,
    work: (accountIds: readonly string[], read: NumbersRead) => Promise<T>,
  ): Promise<T[]> {
    const { redis, keys } = this.#stores;
    return this.#locked(async (tx) => {
      const { seen } = await seeShards(redis, keys, [this.#shard]);
      const common = Promise.all([
        judgeShards(tx.unsafe, seen).then((all) => this.#accept(all)),
        this.#selectLeft(tx),
        selectRejectedIds(tx, this.#shard),
        before(tx),
      ]);
      const workOn = async (accountIds: readonly string[]): Promise<T> => {
        const [[judged, left, rejected], numbers] = await Promise.all([common, selectLastNumbers(tx, accountIds)]);
        return work(accountIds, { historyOf: historiesOf(judged, left), rejected, numbers, marks: marksOf(judged) });
      };
      return Promise.all(parts.map(workOn));
    });
  }

  /** While `work` is under way, no flush of the shard can get from its look at Redis to its commit. */
  async #locked<T>(work: (tx: Tx) => Promise<T>): Promise<T> {
    return this.#stores.sql.begin(async (tx) => {
      await this.#lock(tx, 'pg_advisory_xact_lock_shared');
      return work(tx);
    }) as Promise<T>;
  }

  /**
   * Reads the account as `read` does, in the caller's transaction, with an exclusive flush lock. Until that transaction ends,
   * nobody else compares, repairs, loads or stores anything in the shard.
   *
   * @throws RedisReplaced, StreamTooLong
   */
  async readAlone(tx: Tx, accountId: string, ticket: string): Promise<Reading> {
    await this.#lock(tx, 'pg_advisory_xact_lock');
    return this.#readLocked(tx, [accountId], ticket);
  }

  #lock(tx: Tx, lock: 'pg_advisory_xact_lock' | 'pg_advisory_xact_lock_shared'): Promise<unknown> {
    return tx.unsafe(`${BOUNDS}; SELECT ${lock}(${FLUSH_LOCK}, ${this.#shard})`);
  }

  async #readLocked(tx: Tx, accountIds: readonly string[], ticket: string): Promise<Reading> {
    const { nowMs, dataId, mark, holdPairs, walletFields, unreadHolds } = await this.#readRedis(accountIds, ticket);
    const seen = new Map([[this.#shard, { mark: readMark(mark), dataId }]]);
    const wallets = new Map<string, Wallet>();
    for (const [i, id] of accountIds.entries()) {
      const wallet = readWallet(walletFields[i] as string[]);
      if (wallet !== null) wallets.set(id, wallet);
    }
    const holds = readHolds(holdPairs);
    const held = Array.from(holds.values()).flat();
    const [judged, left, horizonMs, settled] = await Promise.all([
      judgeShards(tx.unsafe, seen).then((all) => this.#accept(all)),
      this.#selectLeft(tx),
      readHorizonMs(tx),
      selectSettled(tx, wallets),
    ]);
    // An event of a dropped day will never be stored, so Postgres will not take its money.
    const streamedOf = (accountId: string): StreamedCall[] =>
      this.#waiting.of(accountId).filter(({ usageId }) => !isBeforeHorizon(usageId, horizonMs));
    const streamed = Array.from(wallets.keys()).flatMap(streamedOf);
    const stored = await selectStored(
      tx,
      [...held, ...streamed].map(({ usageId }) => usageId),
    );
    const states = Array.from(wallets, ([accountId, wallet]) => ({
      accountId,
      wallet,
      settled: settled.get(accountId) as Settled,
      holds: holds.get(accountId) ?? [],
      streamed: streamedOf(accountId),
      stored,
      isIncomplete: unreadHolds > 0 || this.hasUnreadable,
    }));
    const permit = { validUntilMs: nowMs + LOCK_LIFE_MS - 1_000, marks: marksOf(judged) };
    const isAnyInDoubt = isInDoubt(judged.history) || left.size > 0;
    const rejected = isAnyInDoubt ? await selectRejectedIds(tx, this.#shard) : new Set<string>();
    return { states, permit, historyOf: historiesOf(judged, left), rejected };
  }

  async #selectLeft(tx: Tx): Promise<ReadonlySet<string>> {
    return this.#mayHaveLeft ? selectLeftInDoubt(tx.unsafe, this.#shard) : new Set();
  }

  /** Whether the stream had an event that this version cannot read: it may belong to any account. */
  get hasUnreadable(): boolean {
    return this.#waiting.hasUnreadable;
  }

  /** The last entry of the stream that was read, in the form for the scripts. */
  get lastRead(): readonly [id: string, text: string] {
    return this.#waiting.lastRead;
  }

  /** Whether the stream had an event of the account when it was last read, stored or not. */
  hasEvents(accountId: string): boolean {
    return this.#waiting.of(accountId).length > 0;
  }

  /**
   * Reads accounts and the stream at one instant. If the stream has more new entries than one reply can have, everything is read
   * once more: the last page must be of the same instant as the accounts.
   */
  async #readRedis(accountIds: readonly string[], ticket: string): Promise<Sight> {
    const { redis, keys } = this.#stores;
    const names = [keys.open, keys.usage, keys.mark].map((of) => of[this.#shard] as string);
    for (const id of accountIds) names.push(keys.wallet(this.#shard, id));
    for (;;) {
      const args = [ticket, ...this.#waiting.lastRead, String(STREAM_PAGE), ...accountIds];
      const reply = (await redis.script(compareWalletsScript, names.length, [...names, ...args])) as Reply;
      const [nowMs, dataId, mark, isLastThere, oldest, entries, holdPairs, walletFields, unreadHolds] = reply;
      this.#waiting.take({ isLastThere: isLastThere === 1, oldest, entries });
      if (this.#waiting.size > this.#bounds.kept) throw new StreamTooLong();
      if (entries.length < STREAM_PAGE) return { nowMs, dataId, mark, holdPairs, walletFields, unreadHolds };
    }
  }
}

const marksOf = ({ seen, lastFlush }: Judged): Permit['marks'] => [markText(seen.mark), markText(lastFlush)];

const historiesOf =
  ({ history }: Judged, left: ReadonlySet<string>): Doubt['historyOf'] =>
  (accountId) =>
    historyOfAccount(history, left.has(accountId));

const BOUNDS = `SET LOCAL lock_timeout = ${LOCK_WAIT_MS}; SET LOCAL idle_in_transaction_session_timeout = ${LOCK_LIFE_MS};
  SET LOCAL enable_seqscan = off`;

/** The reply of compare-wallets.lua. */
type Reply = [
  nowMs: number,
  dataId: string,
  mark: string,
  isLastThere: number,
  oldest: string,
  entries: RawEntry[],
  holdPairs: string[],
  walletFields: string[][],
  unreadHolds: number,
];

/** The same without the stream. */
type Sight = {
  readonly nowMs: number;
  readonly dataId: string;
  readonly mark: string;
  readonly holdPairs: readonly string[];
  readonly walletFields: readonly string[][];
  readonly unreadHolds: number;
};

const FREE_FIELD = freeField('');

/** @param fields names and values by turns, from in-text.lua. @returns null: the wallet is not loaded */
export function readWallet(fields: readonly string[]): Wallet | null {
  const numbers = new Map<string, number>();
  const freeUsed = new Map<string, number>();
  const budgets = new Map<string, Spending>();
  const damagedFields: string[] = [];
  for (let i = 0; i + 1 < fields.length; i += 2) {
    const [name, value] = [fields[i] as string, fields[i + 1] as string];
    if (name.startsWith(CHILD_FIELD)) {
      const [, spentMicros, period] = CHILD_STATE.exec(value)?.map(Number) ?? [];
      const isDamaged = !Number.isSafeInteger(spentMicros) || !Number.isSafeInteger(period);
      if (isDamaged) damagedFields.push(name);
      else budgets.set(name, { period: period as number, spentMicros: spentMicros as number });
      continue;
    }
    const isFree = name.startsWith(FREE_FIELD);
    if (!isFree && !NUMBERS.has(name)) continue;
    const isDamaged = !INTEGER.test(value) || !Number.isSafeInteger(Number(value));
    if (isDamaged) damagedFields.push(name);
    if (!isFree) numbers.set(name, isDamaged ? 0 : Number(value));
    else if (!isDamaged) freeUsed.set(name.slice(FREE_FIELD.length), Number(value));
  }
  const balanceMicros = numbers.get('balance');
  if (balanceMicros === undefined) return null;
  damagedFields.push(...ALWAYS_THERE.filter((name) => !numbers.has(name)));
  return {
    balanceMicros,
    creditSeq: numbers.get('credit_seq') ?? 0,
    debitSeq: numbers.get('debit_seq') ?? 0,
    debitedMicros: numbers.get('debited') ?? 0,
    freeUsed,
    budgets,
    repairId: numbers.get('repair') ?? 0,
    damagedFields,
  };
}

/** What hydrate-wallet.lua writes in addition to the balance. */
const ALWAYS_THERE = ['credit_seq', 'debit_seq', 'debited'];

/** The fields of a wallet that are read here, in addition to the free calls. */
const NUMBERS: ReadonlySet<string> = new Set(['balance', ...ALWAYS_THERE, 'repair']);

/** An integer in the form that Redis writes and HINCRBY accepts. */
const INTEGER = /^(0|-?[1-9]\d*)$/;

/**
 * A wallet's field for a child key: its bucket, which counts as full if damaged, then what was spent of its budget, and in which
 * period.
 */
const CHILD_STATE = /^\S+ \S+ (0|-?[1-9]\d*) (0|[1-9]\d*)$/;

/** Reads holds in the form that batch.lua writes, and groups them by account. */
function readHolds(pairs: readonly string[]): Map<string, Hold[]> {
  const holds = new Map<string, Hold[]>();
  for (let i = 0; i + 1 < pairs.length; i += 2) {
    const [usageId, text] = [pairs[i] as string, pairs[i + 1] as string];
    const [, amount, free, , , accountId = '', , serviceId = ''] = text.split('\t', 8);
    const amounts = { amountMicros: Number(amount), freeTier: free === '1', budgets: budgetsOfHold(text) };
    const hold = { usageId, text, accountId, serviceId, ...amounts };
    const others = holds.get(accountId);
    if (others === undefined) holds.set(accountId, [hold]);
    else others.push(hold);
  }
  return holds;
}
