import { randomUUID } from 'node:crypto';
import { freeField } from '../../platform/redis-keys.ts';
import { repairWalletScript } from '../scripts.ts';
import { type AccountState, agrees, type Comparison, compare, type Wallet } from './identity.ts';
import { explain, obstacleOf, type RecentCall } from './provable.ts';
import { beginRepair, endRepair, selectCallsBefore, unmarkCredits } from './reconcile-sql.ts';
import type { Reading, ReconcileStores, ShardView } from './shard-view.ts';

/** Looks at an account: one that finds the drift, one that finds it gone, and one for a repair that another came before. */
const MAX_LOOKS = 3;

export type RepairRequest = {
  readonly view: ShardView;
  readonly shard: number;
  readonly accountId: string;
  readonly madeBy: string;
  readonly redisStartedAtMs: number;
  /** When the account was first found drifting before this comparison; null: never. */
  readonly driftingSinceMs: number | null;
  readonly agreedSinceStart: boolean;
  /** Its repairs of which nobody knows whether they were made. */
  readonly begun: readonly number[];
};

/** What is left after a repair was tried: the comparison and why; null when the account agrees. */
export type Left = {
  readonly comparison: Comparison;
  readonly unproven: string;
  /** Nothing will prove it while this Redis process runs. */
  readonly isFinal: boolean;
} | null;

type Plan = {
  readonly comparison: Comparison;
  readonly reason: string;
  readonly validUntilMs: number;
};

/** Repairs an account where `explain` says that it is provably right, each time with a row in `repairs`. */
export class Repairer {
  readonly #stores: ReconcileStores;
  #repaired = 0;

  constructor(stores: ReconcileStores) {
    this.#stores = stores;
  }

  /** Wallets repaired since the start. */
  get repaired(): number {
    return this.#repaired;
  }

  /** Looks at the account again, under the lock, and repairs it when that is provably right. */
  async repair(request: RepairRequest): Promise<Left> {
    const { view, accountId, redisStartedAtMs } = request;
    // Before the lock: of the calls from before Redis's start, those that it lost are all stored by now.
    const calls = await selectCallsBefore(this.#stores.sql, accountId, redisStartedAtMs);
    for (let attempt = 0; attempt < MAX_LOOKS; attempt++) {
      const ticket = randomUUID();
      const left = await view.read([accountId], (reading) => this.#tryOnce(request, reading, calls, ticket), ticket);
      if (left !== 'again') return left;
    }
    return this.#lookOnly(request);
  }

  /** Has credits applied again that Redis lost. They are numbered, so that is provably right whenever it lost them. */
  async restoreCredits({ accountId, wallet, settled }: AccountState, madeBy: string): Promise<void> {
    // Its number may be what is damaged.
    if (wallet.damagedFields.length > 0) return;
    const credits = { accountId, madeBy, walletSeq: wallet.creditSeq, creditSeq: settled.creditSeq };
    if (await unmarkCredits(this.#stores.sql, credits)) this.#repaired++;
  }

  /**
   * Says of repairs whose reply was lost whether they were made. They must have been begun before the wallet was read, and it
   * agrees or has another ticket by now: then none of them can still be made.
   */
  async resolve(begun: readonly number[], { repairId, damagedFields }: Wallet): Promise<void> {
    if (damagedFields.length > 0) return;
    for (const id of begun) {
      const isMade = id === repairId;
      if ((await endRepair(this.#stores.sql, id, isMade ? 'done' : 'left')) && isMade) this.#repaired++;
    }
  }

  async #tryOnce(
    request: RepairRequest,
    { states: [state], validUntilMs }: Reading,
    calls: readonly RecentCall[],
    ticket: string,
  ): Promise<Left | 'again'> {
    // Redis lost it meanwhile.
    if (state === undefined) return null;
    await this.resolve(request.begun, state.wallet);
    const comparison = compare(state);
    if (agrees(comparison)) return null;
    const verdict = explain(comparison, { ...state, ...request, calls });
    if ('unproven' in verdict) return { comparison, ...verdict, isFinal: obstacleOf(comparison) === null };
    await this.#carryOut(request, { comparison, validUntilMs, ...verdict }, ticket);
    // The next look says whether it is right now.
    return 'again';
  }

  async #lookOnly({ view, accountId }: RepairRequest): Promise<Left> {
    const [state] = await view.read([accountId], async ({ states }) => states);
    if (state === undefined) return null;
    const comparison = compare(state);
    if (agrees(comparison)) return null;
    return { comparison, unproven: 'its repairs were refused, see their records', isFinal: false };
  }

  async #carryOut({ shard, madeBy }: RepairRequest, plan: Plan, ticket: string): Promise<void> {
    const { sql, redis, keys } = this.#stores;
    const { comparison, reason } = plan;
    const { accountId } = comparison;
    const names = [keys.wallet(shard, accountId), keys.open[shard] as string];
    const id = await beginRepair(sql, { accountId, madeBy, reason, ...describe(comparison) });
    const args = repairArgs(plan, ticket, id);
    const done = (await redis.script(repairWalletScript, names.length, [...names, ...args])) === 1;
    if (done) this.#repaired++;
    await endRepair(sql, id, done ? 'done' : 'left');
  }
}

/** Of `repair-wallet.lua`. */
function repairArgs({ comparison, validUntilMs }: Plan, ticket: string, id: number): string[] {
  const { storedHolds, freeDrifts, driftMicros } = comparison;
  const args = [ticket, String(validUntilMs), String(id), String(-driftMicros), String(storedHolds.length)];
  for (const { usageId, text } of storedHolds) args.push(usageId, text);
  for (const { serviceId, used, expected } of freeDrifts) args.push(freeField(serviceId), String(expected - used));
  return args;
}

/** What the record says: enough to undo it by hand. Balances as they were read; the change is what was made. */
function describe({ walletMicros, expectedMicros, freeDrifts, storedHolds }: Comparison) {
  const free = (pick: 'used' | 'expected') =>
    Object.fromEntries(freeDrifts.map((drift) => [drift.serviceId, drift[pick]]));
  const holds = Object.fromEntries(storedHolds.map(({ usageId, text }) => [usageId, text]));
  return {
    before: { balance_micros: walletMicros, free_used: free('used'), holds },
    after: { balance_micros: expectedMicros, free_used: free('expected'), holds: {} },
    changeMicros: expectedMicros - walletMicros,
  };
}
