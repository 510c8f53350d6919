// Hands states of the model to the decision functions of the product.

import {
  historyOfAccount,
  judge,
  type Mark,
  type Seen,
  type ShardHistory,
  type Verdict,
} from '../../src/ledger/history/judge.ts';
import { type AccountState, agrees, compare, knowsItsDebits } from '../../src/ledger/reconcile/identity.ts';
import type { BudgetPart } from '../../src/ledger/usage-event.ts';
import type { Rules } from './checks.ts';
import {
  AMOUNTS,
  type Data,
  END,
  type End,
  type Event,
  type Instance,
  LATE,
  numberOf,
  PG_DEBIT,
  type Pg,
  REFUND,
  STORED,
  WALLET_DEBIT,
  type Wallet,
} from './state.ts';

export const dataIdOf = ({ run, replication }: Instance, { without }: Rules): string =>
  without.has('replicationId') ? `${run}` : `${run} ${replication}`;

const markOf = (mark: number, { without }: Rules): Mark | null =>
  mark === 0 ? null : { flushId: Math.floor(mark / 100), token: without.has('token') ? '' : String(mark % 100) };

export const flushOf = (mark: number): number => Math.floor(mark / 100);

/** The number of the youngest row of the journal, which flushes, credits and debits share. */
export const postingOf = ({ journal, credits, debit }: Pg): number =>
  journal.length + Math.min(credits, 1) + (debit === PG_DEBIT.taken ? 1 : 0);

export const lastFlushOf = (pg: Pg): number => pg.journal.at(-1) ?? 0;

export function historyOf(pg: Pg): ShardHistory {
  const { dataId, doubt, verified } = pg;
  return {
    dataId,
    doubt,
    verified,
  };
}

export const accountHistoryOf = (pg: Pg): ShardHistory => historyOfAccount(historyOf(pg), pg.left);

export function verdictOn(server: Instance, pg: Pg, rules: Rules): Verdict {
  const { without } = rules;
  const { mark } = server.data;
  const history = historyOf(pg);
  const seen: { -readonly [K in keyof Seen]: Seen[K] } = { mark: markOf(mark, rules), dataId: dataIdOf(server, rules) };
  const isInJournal =
    mark === 0 ||
    (without.has('token') ? pg.journal.some((its) => flushOf(its) === flushOf(mark)) : pg.journal.includes(mark));
  if (without.has('dataId')) seen.dataId = history.dataId as string;
  return judge(seen, history, isInJournal || without.has('olderPostgres'));
}

export function chargeOf(call: number, { free }: Rules): number {
  return call === 1 && free ? 0 : (AMOUNTS.calls[call] as number);
}

function storedAmount(how: number, call: number, rules: Rules): number {
  if (how === STORED.captured) return AMOUNTS.captured;
  return how === STORED.charged || how === STORED.late ? chargeOf(call, rules) : 0;
}

/** What the call of an event is charged. */
function amountOf(event: Event, rules: Rules): number {
  if (endOf(event) === END.captured) return AMOUNTS.captured;
  return isCharged(event) ? chargeOf(callOf(event), rules) : 0;
}

export const isFree = (call: number, { free }: Rules): boolean => call === 1 && free === true;

/** The period of the budget in which a call counts; 0: in none. */
const periodOf = (call: number, isLate: boolean, { budget }: Rules): number => (budget ? (isLate ? 2 : call + 1) : 0);

/** The period that the hold of a call names. */
export const periodOfHold = (call: number, { holds }: Data, rules: Rules): number =>
  periodOf(call, (holds & LATE) !== 0, rules);

/**
 * The hold of a call. By the clock, the first call is in the first period and the second in the second. If the first comes later, the
 * clock was set back, and the wallet stays in the period that it knows.
 */
export function newHold(call: number, wallet: Wallet, { budget, without }: Rules): number {
  const isLate = budget && call === 0 && wallet.period === 2 && !without.has('laterPeriod');
  return (1 << call) | (isLate ? LATE : 0);
}

/** What the hold of a call has in `holds`. */
export const bitsOfHold = (call: number): number => (call === 0 ? 1 | LATE : 1 << call);

/** The wallet after a hold has taken this from it; or, negative, after a part has come back. */
export function counted(
  wallet: Wallet,
  period: number,
  amount: number,
  rules: Rules,
): Pick<Wallet, 'period' | 'spent'> {
  const { spent } = wallet;
  const isOther = rules.without.has('laterPeriod') ? period !== wallet.period : period > wallet.period;
  if (isOther && amount > 0) return { period, spent: amount };
  const isOpen = period === wallet.period || rules.without.has('holdPeriod');
  return { period: wallet.period, spent: isOpen && period > 0 ? spent + amount : spent };
}

export const creditOf = ({ credits }: Pg): number =>
  [0, AMOUNTS.credit, AMOUNTS.otherCredit, AMOUNTS.calls[0]][credits] as number;

/** The period of the budget that the refund lowers; 0: there is none. */
export const periodOfRefund = ({ credits, stored }: Pg, rules: Rules): number =>
  credits === REFUND ? periodOf(0, stored[0] === STORED.late, rules) : 0;

/** What a wallet is loaded with. */
export function settledWallet(pg: Pg, rules: Rules): Wallet {
  const taken = pg.debit === PG_DEBIT.taken;
  const calls = pg.stored.reduce((sum, how, call) => sum + storedAmount(how, call, rules), 0);
  const credits = creditOf(pg);
  const balance = AMOUNTS.initial + credits - (taken ? AMOUNTS.debit : 0) - calls;
  const refused = pg.debit === PG_DEBIT.refused;
  const spentIn = (its: number): number =>
    pg.stored.reduce((sum, how, call) => {
      const isIts = periodOf(call, how === STORED.late, rules) === its;
      return sum + (isIts ? storedAmount(how, call, rules) : 0);
    }, 0);
  // A refund leaves the period open.
  const period = [2, 1].find((its) => spentIn(its) > 0) ?? 0;
  const refunded = period > 0 && period === periodOfRefund(pg, rules) ? creditOf(pg) : 0;
  return {
    balance,
    creditSeq: Math.min(pg.credits, 1),
    debit: taken ? WALLET_DEBIT.taken : refused ? WALLET_DEBIT.refused : WALLET_DEBIT.none,
    freeUsed: pg.stored.filter((how, call) => how === STORED.charged && isFree(call, rules)).length,
    period,
    spent: period === 0 ? 0 : spentIn(period) - refunded,
    tampered: 0,
    ticket: 0,
  };
}

export type Found = {
  readonly agrees: boolean;
  readonly drift: number;
  readonly freeDrift: number;
  readonly periodDrift: number;
  readonly spentDrift: number;
  readonly lostDebits: number;
  readonly storedHolds: number;
  /** The wallet has a credit or a debit that Postgres does not know. */
  readonly isAhead: boolean;
};

const NOTHING: Found = {
  agrees: true,
  drift: 0,
  freeDrift: 0,
  periodDrift: 0,
  spentDrift: 0,
  lostDebits: 0,
  storedHolds: 0,
  isAhead: false,
};
const found = new Map<string, Map<number, Found>>();

/** Compares a Redis with Postgres by the product's `compare`. */
export function compareAt(data: Data, pg: Pg, rules: Rules): Found {
  if (data.wallet === null) return NOTHING;
  const missing = rules.without.has('refundMissing') ? ' without missing refunds' : '';
  const counts = rules.without.has('endsOnce') ? 'twice' : 'once';
  const kind = `${rules.free ? 'free' : rules.budget ? 'budget' : 'paid'} ${counts}${missing}`;
  const of = found.get(kind) ?? new Map<number, Found>();
  found.set(kind, of);
  const key = numberOf(data) * 4_194_304 + numberOf(pg);
  const before = of.get(key);
  if (before !== undefined) return before;
  const now = compareAnew(data, data.wallet, pg, rules);
  of.set(key, now);
  return now;
}

function compareAnew(data: Data, wallet: Wallet, pg: Pg, rules: Rules): Found {
  const settled = settledWallet(pg, rules);
  const common = { accountId: 'account', serviceId: 'service' };
  const freeMap = (used: number): ReadonlyMap<string, number> => new Map(used === 0 ? [] : [['service', used]]);
  const spending = ({ period, spent }: Wallet): AccountState['wallet']['budgets'] =>
    new Map(period === 0 ? [] : [['key', { period, spentMicros: spent }]]);
  const budgetsOf = (period: number): BudgetPart[] => (period > 0 ? [{ keyId: 'key', period }] : []);
  const theWallet = {
    balanceMicros: wallet.balance,
    creditSeq: wallet.creditSeq,
    debitSeq: wallet.debit === WALLET_DEBIT.none ? 0 : 1,
    debitedMicros: wallet.debit === WALLET_DEBIT.taken ? AMOUNTS.debit : 0,
    freeUsed: freeMap(wallet.freeUsed),
    budgets: spending(wallet),
    repairId: 0,
    damagedFields: [],
  };
  const missing = settled.creditSeq > wallet.creditSeq ? creditOf(pg) : 0;
  const theSettled = {
    balanceMicros: settled.balance,
    missingCreditsMicros: missing,
    lostCreditsMicros: 0,
    missingRefunds:
      missing > 0 && !rules.without.has('refundMissing')
        ? [{ amountMicros: missing, budgets: budgetsOf(periodOfRefund(pg, rules)) }]
        : [],
    creditSeq: settled.creditSeq,
    debitSeq: settled.debit === WALLET_DEBIT.none ? 0 : 1,
    debitedMicros: settled.debit === WALLET_DEBIT.taken ? AMOUNTS.debit : 0,
    begunDebitSeq: pg.debit === PG_DEBIT.begun ? 1 : null,
    begunDebitMicros: pg.debit === PG_DEBIT.begun ? AMOUNTS.debit : null,
    freeUsed: freeMap(settled.freeUsed),
    budgets: spending(settled),
  };
  const stored = new Map(
    pg.stored.flatMap((how, call) =>
      how === STORED.not || how === STORED.aside
        ? []
        : [
            [
              String(call),
              {
                amountMicros: storedAmount(how, call, rules),
                freeCall: how === STORED.charged && isFree(call, rules),
              },
            ],
          ],
    ),
  );
  const isTwice = (call: number): boolean =>
    rules.without.has('endsOnce') && data.stream.some((event) => callOf(event) === call) && !stored.has(String(call));
  const comparison = compare({
    accountId: 'account',
    wallet: theWallet,
    settled: theSettled,
    holds: callsOf(data.holds).map((call) => ({
      ...common,
      usageId: isTwice(call) ? `another than ${call}` : String(call),
      text: '',
      amountMicros: chargeOf(call, rules),
      freeTier: isFree(call, rules),
      budgets: budgetsOf(periodOfHold(call, data, rules)),
    })),
    streamed: data.stream.map((event) => ({
      ...common,
      usageId: String(callOf(event)),
      chargedMicros: amountOf(event, rules),
      freeCall: isCharged(event) && isFree(callOf(event), rules),
      budgets: budgetsOf(periodOf(callOf(event), endOf(event) === END.late, rules)),
    })),
    stored,
    isIncomplete: false,
  } as Parameters<typeof compare>[0]);
  return {
    agrees: agrees(comparison),
    drift: comparison.driftMicros,
    freeDrift: comparison.freeDrifts.reduce((sum, { used, expected }) => sum + used - expected, 0),
    periodDrift: comparison.budgetDrifts.reduce((sum, its) => sum + its.period - its.expectedPeriod, 0),
    spentDrift: comparison.budgetDrifts.reduce((sum, its) => sum + its.spentMicros - its.expectedMicros, 0),
    lostDebits: comparison.lostDebitsMicros,
    storedHolds: comparison.storedHolds.reduce((bits, { usageId }) => bits | bitsOfHold(Number(usageId)), 0),
    isAhead: wallet.creditSeq > settled.creditSeq || !knowsItsDebits(theWallet, theSettled),
  };
}

/** The entry that an instance appends: like a stream's ids, `instance` keeps entries apart that were appended after different faults. */
export function entryOf(call: number, end: End, instance: Instance, faultsLeft: number): Event {
  return (((instance.run * 16 + instance.replication) * 8 + faultsLeft) * 2 + call) * 4 + end;
}

export const callOf = (event: Event): number => (event >> 2) & 1;
export const endOf = (event: Event): End => (event & 3) as End;
/** Whether it charges anything. */
export const isCharged = (event: Event): boolean => endOf(event) !== END.refunded;
export const callsOf = (bits: number): number[] => [0, 1].filter((call) => bits & (1 << call));
