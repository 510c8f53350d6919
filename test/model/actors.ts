// What the gateway and the sweep do, and those who move credits and debits.

import { isInDoubt } from '../../src/ledger/history/judge.ts';
import type { Rules } from './checks.ts';
import { ended, openClaim, told } from './claims.ts';
import {
  bitsOfHold,
  callsOf,
  chargeOf,
  compareAt,
  counted,
  creditOf,
  dataIdOf,
  endOf,
  entryOf,
  historyOf,
  isFree,
  newHold,
  periodOfHold,
  periodOfRefund,
  verdictOn,
} from './judging.ts';
import {
  AMOUNTS,
  CALL,
  type Data,
  END,
  type Event,
  type Ghost,
  type Instance,
  intern,
  LATE,
  ON,
  PG_DEBIT,
  type Pg,
  REFUND,
  STORED,
  type State,
  type Step,
  WALLET_DEBIT,
  type Wallet,
  withParts,
} from './state.ts';

/** The Redis that somebody is connected to. */
export function serverOf(state: State, who: number): Instance {
  return state.old !== null && (state.onOld & who) !== 0 ? state.old : state.redis;
}

export const where = (state: State, who: number): string =>
  state.old === null ? '' : (state.onOld & who) !== 0 ? ' at the old master' : ' at the new master';

export function withData(state: State, who: number, data: Data): State {
  const server = serverOf(state, who);
  const changed = { ...server, data: intern(data) };
  return server === state.redis ? withParts(state, { redis: changed }) : withParts(state, { old: changed });
}

export const withPg = (state: State, pg: Pg): State => withParts(state, { pg: intern(pg) });

export function withGhost(state: State, ghost: Partial<Ghost>): State {
  const next = intern({ ...state.ghost, ...ghost });
  return next === state.ghost ? state : withParts(state, { ghost: next });
}

export const broken = (state: State, promise: string): State =>
  state.ghost.broken === '' ? withGhost(state, { broken: promise }) : state;

const isFenced = (state: State, server: Instance, rules: Rules): boolean =>
  verdictOn(server, state.pg, rules) === 'postgres is older';

/** Whether the wallet, which is about to pay, has money that it should not have although it was dropped or repaired since. */
function checkNotTooMuch(state: State, who: number, rules: Rules): State {
  if (!state.ghost.exact || serverOf(state, who) !== state.redis) return state;
  const { drift } = compareAt(state.redis.data, state.pg, rules);
  const { tampered } = state.redis.data.wallet as Wallet;
  return drift - tampered > 0
    ? broken(state, 'a wallet pays with money that was lost before it was dropped or repaired')
    : state;
}

export function gateway(state: State, rules: Rules): Step[] {
  const server = serverOf(state, ON.gateway);
  const { data } = server;
  const at = where(state, ON.gateway);
  const steps: Step[] = [];
  const end = (call: number, how: number): readonly number[] =>
    state.calls.map((was, its) => (its === call ? how : was));
  for (const [call, how] of state.calls.entries()) {
    const price = chargeOf(call, rules);
    const name = `call ${call + 1}`;
    if (rules.without.has('claimAtOnce') && how === CALL.new && told(data, rules) === 'free') {
      steps.push({
        words: `the gateway finds that the key of ${name} is free${at}`,
        state: withParts(state, { calls: end(call, CALL.looked) }),
      });
    }
    if (mayClaim(how, data, rules) && data.wallet !== null && data.wallet.balance >= price) {
      const used = isFree(call, rules) ? 1 : 0;
      const holds = data.holds | newHold(call, data.wallet, rules);
      const period = periodOfHold(call, { ...data, holds }, rules);
      const wallet = {
        ...data.wallet,
        ...counted(data.wallet, period, price, rules),
        balance: data.wallet.balance - price,
        freeUsed: data.wallet.freeUsed + used,
      };
      const admitted = withData(checkNotTooMuch(state, ON.gateway, rules), ON.gateway, {
        ...data,
        wallet,
        holds,
        claim: openClaim(call, rules),
      });
      const unclaimed = state.ghost.unclaimed | (1 << call);
      const next = rules.keyed && server !== state.redis ? withGhost(admitted, { unclaimed }) : admitted;
      steps.push({
        words: `the gateway admits ${name}${at}: ${price} is held`,
        state: withParts(next, { calls: end(call, CALL.open) }),
      });
    }
    if (how !== CALL.open) continue;
    const has = (data.holds & (1 << call)) !== 0;
    const holds = data.holds & ~bitsOfHold(call);
    const charged = call === 0 && (data.holds & LATE) !== 0 ? END.late : END.charged;
    const settled = has
      ? withData(state, ON.gateway, {
          ...data,
          holds,
          stream: [...data.stream, entryOf(call, charged, server, state.faultsLeft)],
          claim: ended(data, call, charged, rules),
        })
      : state;
    const words = has
      ? `charges ${name}${at}: its hold becomes an event`
      : `ends ${name}${at}, which has no hold any more`;
    steps.push({
      words: `the gateway ${words}`,
      state: withParts(settled, { calls: end(call, has ? CALL.charged : CALL.lost) }),
    });
    if (call === 1 && has) {
      const refunded = withData(state, ON.gateway, {
        ...giveBack(data, call, entryOf(call, END.refunded, server, state.faultsLeft), 0, rules),
        holds,
      });
      steps.push({
        words: `the gateway refunds ${name}${at}`,
        state: withParts(refunded, { calls: end(call, CALL.refunded) }),
      });
      if (!rules.byUse) continue;
      const captured = withData(state, ON.gateway, {
        ...giveBack(data, call, entryOf(call, END.captured, server, state.faultsLeft), AMOUNTS.captured, rules),
        holds,
      });
      steps.push({
        words: `the gateway captures ${AMOUNTS.captured} of ${name}${at}, and the rest returns`,
        state: withParts(captured, { calls: end(call, CALL.captured) }),
      });
    } else if (call === 0) {
      steps.push({ words: `the gateway of ${name} dies`, state: withParts(state, { calls: end(call, CALL.died) }) });
    }
  }
  return steps;
}

const mayClaim = (how: number, data: Data, rules: Rules): boolean =>
  rules.without.has('claimAtOnce') ? how === CALL.looked : how === CALL.new && told(data, rules) === 'free';

/** Appends the event of a call that costs less than its hold, and gives back the rest. */
function giveBack(data: Data, call: number, event: Event, costs: number, rules: Rules): Data {
  const stream = [...data.stream, event];
  const claim = ended(data, call, endOf(event), rules);
  if (data.wallet === null) return { ...data, stream, claim };
  const { balance, freeUsed } = data.wallet;
  const back = chargeOf(call, rules) - costs;
  const wallet = {
    ...data.wallet,
    ...counted(data.wallet, periodOfHold(call, data, rules), -back, rules),
    balance: balance + back,
    freeUsed: freeUsed - (isFree(call, rules) ? 1 : 0),
  };
  return { ...data, stream, wallet, claim };
}

/** Gives back holds of calls that no gateway has open. */
export function sweep(state: State, rules: Rules): Step[] {
  const server = serverOf(state, ON.others);
  const { data } = server;
  if (data.holds === 0) return [];
  const isCompared =
    !isInDoubt(historyOf(state.pg)) && (state.pg.dataId === dataIdOf(server, rules) || rules.without.has('dataId'));
  if (!isCompared && !rules.without.has('sweepWaits')) return [];
  return callsOf(data.holds)
    .filter((call) => state.calls[call] !== CALL.open)
    .map((call) => ({
      words: `the sweep gives back the hold of call ${call + 1}${where(state, ON.others)}`,
      state: withData(state, ON.others, {
        ...giveBack(data, call, entryOf(call, END.refunded, server, state.faultsLeft), 0, rules),
        holds: data.holds & ~bitsOfHold(call),
      }),
    }));
}

/** A credit is committed in Postgres, then it is added to the wallet. */
export function credit(state: State, rules: Rules): Step[] {
  if (!rules.credit) return [];
  const { pg } = state;
  const server = serverOf(state, ON.gateway);
  const { wallet } = server.data;
  const steps: Step[] = [];
  if (isFenced(state, server, rules)) return [];
  if (pg.credits === 0) {
    const isAgain = state.ghost.rewound && state.ghost.credited;
    const next = withGhost(withPg(state, { ...pg, credits: isAgain ? 2 : 1 }), { credited: true });
    steps.push({ words: `Postgres stores ${isAgain ? 'another' : 'a'} credit, number 1`, state: next });
  } else if (wallet !== null && wallet.creditSeq === 0) {
    const amount = creditOf(pg);
    const data = { ...server.data, wallet: { ...wallet, creditSeq: 1, balance: wallet.balance + amount } };
    steps.push({
      words: `the credit is added to the wallet${where(state, ON.gateway)}`,
      state: withData(state, ON.gateway, data),
    });
  }
  return steps;
}

/** A refund of the first call is committed in Postgres once the call is stored. Then it is added to the wallet, as a credit is. */
export function refund(state: State, rules: Rules): Step[] {
  if (!rules.refund) return [];
  const { pg } = state;
  const server = serverOf(state, ON.gateway);
  const { wallet } = server.data;
  if (isFenced(state, server, rules)) return [];
  if (pg.credits === 0) {
    const isStored = [STORED.charged, STORED.late].some((how) => pg.stored[0] === how);
    const next = (): State => withPg(state, { ...pg, credits: REFUND });
    return isStored ? [{ words: 'Postgres stores a refund of call 1, as credit 1', state: next() }] : [];
  }
  if (wallet === null || wallet.creditSeq > 0) return [];
  const amount = creditOf(pg);
  const isOpen = wallet.period === periodOfRefund(pg, rules) || rules.without.has('refundPeriod');
  const lowered = {
    ...wallet,
    creditSeq: 1,
    balance: wallet.balance + amount,
    spent: wallet.spent - (isOpen ? amount : 0),
  };
  const given = rules.without.has('refundTicket') ? lowered : { ...lowered, ticket: 0 };
  const words = `the refund is added to the wallet${where(state, ON.gateway)}`;
  return [{ words, state: withData(state, ON.gateway, { ...server.data, wallet: given }) }];
}

/** A debit is begun in Postgres, decided by the wallet, and posted. */
export function debit(state: State, rules: Rules): Step[] {
  if (!rules.debit) return [];
  const { pg, answer } = state;
  const server = serverOf(state, ON.gateway);
  if (isFenced(state, server, rules)) return [];
  const { wallet } = server.data;
  const steps: Step[] = [];
  if (pg.debit === PG_DEBIT.none && answer === 0) {
    steps.push({ words: 'Postgres begins a debit', state: withPg(state, { ...pg, debit: PG_DEBIT.begun }) });
  }
  if (pg.debit !== PG_DEBIT.begun) return steps;
  if (answer !== 0) {
    const taken = answer === WALLET_DEBIT.taken;
    const next = withParts(withPg(state, { ...pg, debit: taken ? PG_DEBIT.taken : PG_DEBIT.refused }), { answer: 0 });
    steps.push({ words: `Postgres stores that the debit was ${taken ? 'taken' : 'refused'}`, state: next });
  } else if (wallet !== null && wallet.debit !== WALLET_DEBIT.none) {
    steps.push({
      words: 'the wallet says again how it decided the debit',
      state: withParts(state, { answer: wallet.debit }),
    });
  } else if (wallet !== null) {
    const taken = wallet.balance >= AMOUNTS.debit;
    const decision = taken ? WALLET_DEBIT.taken : WALLET_DEBIT.refused;
    const decided = { ...wallet, debit: decision, balance: wallet.balance - (taken ? AMOUNTS.debit : 0), ticket: 0 };
    const next = withData(checkNotTooMuch(state, ON.gateway, rules), ON.gateway, { ...server.data, wallet: decided });
    const words = `the wallet${where(state, ON.gateway)} ${taken ? 'takes' : 'refuses'} the debit`;
    steps.push({ words, state: withParts(next, { answer: decision }) });
  }
  return steps;
}
