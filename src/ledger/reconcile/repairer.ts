import { randomUUID } from 'node:crypto';
import { freeField } from '../../platform/redis-keys.ts';
import { repairWalletScript } from '../scripts.ts';
import { decide } from './decision.ts';
import { type AccountState, agrees, type BudgetDrift, type Comparison, compare, type Wallet } from './identity.ts';
import { beginRepair, endRepair, unmarkCredits } from './reconcile-sql.ts';
import type { Permit, Reading, ReconcileStores, ShardView } from './shard-view.ts';

/**
 * How often `repair` reads an account and may repair it: once to find the drift, once to confirm the repair, and once more if
 * another process repaired the account in between.
 */
const MAX_LOOKS = 3;
const REFUSED = 'Redis refused the repairs of this account: see their records';

/** The account whose debits are restored, or which is repaired. */
type Restoration = {
  readonly view: ShardView;
  readonly shard: number;
  readonly accountId: string;
  readonly madeBy: string;
  /** Ids of repairs of the account that may or may not have been made, because their reply was lost. */
  readonly begun: readonly number[];
};

/** What is left after an attempted repair: the comparison and the reason; null when the account agrees. */
type Left = {
  readonly comparison: Comparison;
  readonly notRepaired: string;
  readonly isObstacle: boolean;
  /** False: Redis refused the repairs, and the next run tries again. */
  readonly isDecided: boolean;
} | null;

type Plan = {
  readonly comparison: Comparison;
  readonly reason: string;
  readonly permit: Permit;
};

/**
 * Repairs accounts as `decide` says, and writes a row in `repairs` for each repair.
 * Tested by test/ledger/reconcile/reconciler.test.ts, restart.test.ts and damaged.test.ts.
 */
export class Repairer {
  readonly #stores: ReconcileStores;
  #repaired = 0;

  constructor(stores: ReconcileStores) {
    this.#stores = stores;
  }

  /** Number of wallets repaired since the start. */
  get repaired(): number {
    return this.#repaired;
  }

  /** Reads the account again, under its shard's flush lock, and repairs what `decide` says. */
  async repair(request: Restoration): Promise<Left> {
    const { view, accountId } = request;
    for (let attempt = 0; attempt < MAX_LOOKS; attempt++) {
      const ticket = randomUUID();
      const left = await view.read([accountId], (reading) => this.#tryOnce(request, reading, ticket), ticket);
      if (left !== 'again') return left;
    }
    return this.#lookOnly(request);
  }

  /** Takes the mark `applied_at` from credits that Redis lost, so that they are applied again. Credits are numbered, so none can be applied twice. */
  async restoreCredits({ accountId, wallet, settled }: AccountState, madeBy: string): Promise<void> {
    // The damaged field may be the credit number, which tells which credits are lost.
    if (wallet.damagedFields.length > 0) return;
    const credits = { accountId, madeBy, walletSeq: wallet.creditSeq, creditSeq: settled.creditSeq };
    if (await unmarkCredits(this.#stores.sql, credits)) this.#repaired++;
  }

  /**
   * Takes debits again that Redis lost; or returns a debit that Redis took after it came back older, although Postgres had stored
   * that it was refused. Debits are numbered and summed, so this is always right. The script makes the change only if no debit was
   * decided since the wallet was read, because the next debit makes the same change by itself.
   */
  async restoreDebits({ view, shard, accountId, madeBy, begun }: Restoration): Promise<void> {
    const ticket = randomUUID();
    await view.read(
      [accountId],
      async ({ states: [state], permit }) => {
        if (state === undefined) return;
        await this.resolve(begun, state.wallet);
        const { lostDebitsMicros, damagedFields } = compare(state);
        if (lostDebitsMicros === 0 || damagedFields.length > 0) return;
        const { debitSeq: seq, debitedMicros: debited } = state.settled;
        const seqBefore = state.wallet.debitSeq;
        const before = debited - lostDebitsMicros;
        const id = await beginRepair(this.#stores.sql, {
          accountId,
          madeBy,
          reason: 'Redis came back with other debits than Postgres has stored: the wallet gets those of Postgres',
          before: { debit_seq: seqBefore, debited_micros: before },
          after: { debit_seq: seq, debited_micros: debited },
          changeMicros: -lostDebitsMicros,
        });
        const changes = ['debit_seq', String(seq - seqBefore), 'debited', String(lostDebitsMicros)];
        const args = [...permitArgs(ticket, permit), String(id), String(-lostDebitsMicros), '0', '0', ...changes];
        await this.change(shard, accountId, id, args);
      },
      ticket,
    );
  }

  /**
   * Records whether repairs whose reply was lost were made: the wallet has the number of the last one. Call this only when none of
   * them can take effect any more. That is so if they began before the wallet was read, and the account agrees or its wallet has
   * got a new ticket since.
   */
  async resolve(
    begun: readonly number[],
    { repairId, damagedFields }: Pick<Wallet, 'repairId' | 'damagedFields'>,
  ): Promise<void> {
    if (damagedFields.length > 0) return;
    for (const id of begun) {
      const isMade = id === repairId;
      if ((await endRepair(this.#stores.sql, id, isMade ? 'done' : 'left')) && isMade) this.#repaired++;
    }
  }

  async #tryOnce(
    request: Restoration,
    { states: [state], historyOf, permit, rejected }: Reading,
    ticket: string,
  ): Promise<Left | 'again'> {
    // The wallet is not loaded any more: Redis lost it after the first comparison.
    if (state === undefined) return null;
    await this.resolve(request.begun, state.wallet);
    const comparison = compare(state);
    if (agrees(comparison)) return null;
    const decision = decide(comparison, state, historyOf(request.accountId), rejected.has(request.accountId));
    if (decision.part === null) return { comparison, ...decision, isDecided: true };
    await this.#carryOut(request, { comparison: decision.part, permit, reason: decision.reason }, ticket);
    // The next reading shows whether the account agrees now.
    return 'again';
  }

  async #lookOnly({ view, accountId }: Restoration): Promise<Left> {
    const [state] = await view.read([accountId], async ({ states }) => states);
    if (state === undefined) return null;
    const comparison = compare(state);
    if (agrees(comparison)) return null;
    return { comparison, notRepaired: REFUSED, isObstacle: false, isDecided: false };
  }

  async #carryOut({ shard, madeBy }: Restoration, plan: Plan, ticket: string): Promise<void> {
    const { comparison, reason } = plan;
    const { accountId } = comparison;
    const id = await beginRepair(this.#stores.sql, { accountId, madeBy, reason, ...describe(comparison) });
    await this.change(shard, accountId, id, repairArgs(plan, ticket, id));
  }

  /** Runs `repair-wallet.lua` with the arguments of a repair that has begun, and records the outcome. @returns whether it was made */
  async change(shard: number, accountId: string, id: number, args: readonly string[]): Promise<boolean> {
    const { sql, redis, keys } = this.#stores;
    const names = [keys.wallet(shard, accountId), keys.open[shard] as string, keys.mark[shard] as string];
    const done = (await redis.script(repairWalletScript, names.length, [...names, ...args])) === 1;
    if (done) this.#repaired++;
    await endRepair(sql, id, done ? 'done' : 'left');
    return done;
  }
}

/** The arguments of `repair-wallet.lua`. */
export function repairArgs({ comparison, permit }: Plan, ticket: string, id: number): string[] {
  const { storedHolds, freeDrifts, budgetDrifts, driftMicros } = comparison;
  const args = [...permitArgs(ticket, permit), String(id), String(-driftMicros)];
  args.push(String(storedHolds.length), String(budgetDrifts.length));
  for (const { usageId, text } of storedHolds) args.push(usageId, text);
  for (const { keyId, period, spentMicros, expectedPeriod, expectedMicros } of budgetDrifts) {
    args.push(keyId, String(period), String(expectedPeriod - period), String(expectedMicros - spentMicros));
  }
  for (const { serviceId, used, expected } of freeDrifts) args.push(freeField(serviceId), String(expected - used));
  return args;
}

/** The arguments that ensure that the wallet has not changed since it was read. */
const permitArgs = (ticket: string, { validUntilMs, marks }: Permit): string[] => [
  ticket,
  String(validUntilMs),
  ...marks,
];

/** What the record of a repair contains, enough to undo it by hand: the values as they were read, and the change. */
export function describe({ walletMicros, expectedMicros, freeDrifts, budgetDrifts, storedHolds }: Comparison) {
  const free = (pick: 'used' | 'expected') =>
    Object.fromEntries(freeDrifts.map((drift) => [drift.serviceId, drift[pick]]));
  // Most repairs concern no budget: their records do not mention any.
  const budgets = (of: (drift: BudgetDrift) => object) =>
    budgetDrifts.length === 0
      ? {}
      : { budgets: Object.fromEntries(budgetDrifts.map((drift) => [drift.keyId, of(drift)])) };
  const holds = Object.fromEntries(storedHolds.map(({ usageId, text }) => [usageId, text]));
  const spending = {
    before: budgets(({ period, spentMicros }) => ({ period, spent_micros: spentMicros })),
    after: budgets(({ expectedPeriod, expectedMicros: spent }) => ({ period: expectedPeriod, spent_micros: spent })),
  };
  return {
    before: { balance_micros: walletMicros, free_used: free('used'), ...spending.before, holds },
    after: { balance_micros: expectedMicros, free_used: free('expected'), ...spending.after, holds: {} },
    changeMicros: expectedMicros - walletMicros,
  };
}
