// What the ledger does: the writer, the loading of wallets, the comparison with its repairs, and the dropping of wallets.

import { isInDoubt, verifiedBy, withDoubt } from '../../src/ledger/history/judge.ts';
import { mayDrop } from '../../src/ledger/history/may-drop.ts';
import { mayLeaveOut, type Run } from '../../src/ledger/history/may-leave-out.ts';
import { mayRepair, staysInDoubt } from '../../src/ledger/history/may-repair.ts';
import { broken, serverOf, where, withData, withGhost, withPg } from './actors.ts';
import type { Rules } from './checks.ts';
import {
  accountHistoryOf,
  callOf,
  compareAt,
  dataIdOf,
  endOf,
  flushOf,
  historyOf,
  isCharged,
  lastFlushOf,
  postingOf,
  settledWallet,
  verdictOn,
} from './judging.ts';
import { streamed } from './losses.ts';
import {
  type Comparison,
  type Data,
  type Dropping,
  END,
  type Hydration,
  IDLE,
  type Instance,
  intern,
  ON,
  PG_DEBIT,
  type Pg,
  STORED,
  type State,
  type Step,
  WALLET_DEBIT,
  type Wallet,
  type Writer,
  withParts,
} from './state.ts';

/** Somebody shares the shard's flush lock. */
const isShared = ({ hydration, comparison }: State): boolean => hydration !== null || comparison !== null;

export function writer(state: State, rules: Rules): Step[] {
  return steps(state, state.writer, state.pg, rules, {
    name: 'the writer',
    set: (its, writer) => withParts(its, { writer }),
    setPg: withPg,
  });
}

/** A writer that was suspended can trim only: Postgres has ended its session. One at a deposed primary goes on there. */
export function lateWriter(state: State, rules: Rules): Step[] {
  if (state.late.at === 'idle') return [];
  return steps(state, state.late, state.right ?? state.pg, rules, {
    name: state.right === null ? 'the writer that was suspended' : 'the writer at the deposed primary',
    set: (its, late) => withParts(its, { late }),
    setPg: (its, pg) => withParts(its, { right: intern(pg) }),
  });
}

type Who = {
  readonly name: string;
  readonly set: (state: State, writer: Writer) => State;
  readonly setPg: (state: State, pg: Pg) => State;
};

function steps(state: State, its: Writer, pg: Pg, rules: Rules, who: Who): Step[] {
  const server = serverOf(state, ON.writer);
  const { data } = server;
  const at = where(state, ON.writer);
  const { name } = who;
  const to = (next: Writer): State => who.set(state, intern(next));
  if (its.at === 'idle') {
    if (data.stream.length === 0) return [];
    // A writer whose last commit did not count tries again. That changes nothing until the waits end.
    const isDone = data.stream.every((event) => pg.stored[callOf(event)] !== 0);
    if (isDone && pg === state.pg && state.copy?.warned && !rules.without.has('warning')) return [];
    // A fenced writer cannot use what it reads.
    if (verdictOn(server, pg, rules) === 'postgres is older') return [];
    return [
      { words: `${name} reads ${data.stream.length} events${at}`, state: to({ at: 'read', batch: data.stream }) },
    ];
  }
  if (its.at === 'read') {
    if (pg === state.pg && isShared(state) && !rules.without.has('loadLock')) return [];
    const verdict = verdictOn(server, pg, rules);
    const isThere =
      (data.stream.includes(its.batch.at(-1) as number) || rules.without.has('pageThere')) &&
      (data.stream.includes(its.batch[0] as number) || rules.without.has('pageBegins'));
    if (verdict === 'postgres is older')
      return [{ words: `${name} finds that Postgres is older${at}`, state: to(IDLE) }];
    if (!isThere) return [{ words: `${name} finds that Redis lost what it had read${at}`, state: to(IDLE) }];
    const isDoubt = verdict === 'redis may have changed';
    const { batch } = its;
    const next = to({ at: 'locked', batch, saw: data.mark, dataId: dataIdOf(server, rules), isDoubt });
    return [{ words: `${name} locks the shard and looks${at}: ${verdict}`, state: next }];
  }
  if (its.at === 'locked') return [commit(state, its, pg, rules, who)];
  const isMine = data.mark === its.saw || rules.without.has('trimMark');
  if (!isMine) return [{ words: `${name} does not trim${at}, where it finds another mark`, state: to(IDLE) }];
  const left = data.stream.filter((event) => !its.batch.includes(event));
  const words = `${name} trims ${data.stream.length - left.length} events${at} and leaves its mark`;
  const next = withData(to(IDLE), ON.writer, { ...data, stream: left, mark: its.mark });
  // The flush was committed at a deposed primary, and may be lost with it.
  const isDeposed = !state.pg.journal.includes(its.mark);
  const lost = state.ghost.lost | streamed({ stream: its.batch });
  if (!isDeposed) return [{ words, state: next }];
  const taken = data.stream.filter((event) => !left.includes(event) && state.pg.stored[callOf(event)] === 0);
  const isLate = its.isGivenUp && server === state.redis && taken.some(isCharged);
  const told = isLate ? broken(next, 'a trim lost a call after an operator had accepted the older Postgres') : next;
  return [{ words, state: withGhost(told, { lost }) }];
}

const STORED_AS = {
  [END.refunded]: STORED.refunded,
  [END.charged]: STORED.charged,
  [END.captured]: STORED.captured,
  [END.late]: STORED.late,
} as const;

/** Stores each call once, and puts aside what Postgres refuses. */
function commit(state: State, its: Writer & { at: 'locked' }, pg: Pg, rules: Rules, who: Who): Step {
  const stored = [...pg.stored];
  for (const event of its.batch) {
    const call = callOf(event);
    if (stored[call] === STORED.not)
      stored[call] = rules.rejects && call === 1 ? STORED.aside : STORED_AS[endOf(event)];
  }
  const { batch, saw } = its;
  const mark = nextMark(state, pg);
  const { doubt, dataId } = its.isDoubt
    ? withDoubt(historyOf(pg), { mark: null, dataId: its.dataId })
    : { doubt: pg.doubt, dataId: pg.dataId };
  const after = { ...pg, stored, journal: [...pg.journal, mark], dataId: dataId as string, doubt };
  const isWarned = state.copy?.warned === true && pg === state.pg;
  const counts = !isWarned || rules.without.has('warning');
  const next = who.set(who.setPg(state, after), counts ? intern({ at: 'stored', batch, saw, mark }) : IDLE);
  const warning = isWarned ? ', with the warning of a cancelled wait' : '';
  const isOlder = saw !== 0 && !pg.journal.includes(saw);
  return {
    words: `${who.name} commits flush ${flushOf(mark)}${its.isDoubt ? ' with doubt' : ''}${warning}`,
    state: isOlder ? broken(next, 'a flush went into an older Postgres') : next,
  };
}

/** The mark of the next flush: a new number here, and a token that is nowhere. */
export function nextMark(state: State, pg: Pg): number {
  return (flushOf(lastFlushOf(pg)) + 1) * 100 + freshToken(state);
}

function freshToken(state: State): number {
  const { redis, old, saved, pg, copy, right, writer, late } = state;
  const marks = [redis.data.mark, old?.data.mark ?? 0, ...saved.map(({ mark }) => mark), ...pg.journal];
  marks.push(...(copy?.pg.journal ?? []), ...(right?.journal ?? []));
  for (const its of [writer, late]) if (its.at === 'stored') marks.push(its.mark);
  return 1 + marks.reduce((most, mark) => Math.max(most, mark % 100), 0);
}

/** Copies a wallet from Postgres to a Redis that lacks it. */
export function hydrate(state: State, rules: Rules): Step[] {
  const { hydration, lateFill, pg } = state;
  const late = lateFill === null ? [] : [fill(withParts(state, { lateFill: null }), lateFill, true, rules)];
  if (hydration !== null) return [...late, fill(withParts(state, { hydration: null }), hydration, false, rules)];
  const server = serverOf(state, ON.others);
  if (server.data.wallet !== null) return late;
  if (isLocked(state) && !rules.without.has('loadLock')) return late;
  if (verdictOn(server, pg, rules) === 'postgres is older') return late;
  const settled = settledWallet(pg, rules);
  const wallet = rules.without.has('loadedSpent') ? { ...settled, period: 0, spent: 0 } : settled;
  const read = intern({ fill: wallet, saw: server.data.mark, lastFlush: lastFlushOf(pg) });
  return [
    ...late,
    {
      words: `a gateway reads the wallet in Postgres: ${wallet.balance}`,
      state: withParts(state, { hydration: read }),
    },
  ];
}

function fill(state: State, its: NonNullable<Hydration>, isLate: boolean, rules: Rules): Step {
  const { pg } = state;
  const { data } = serverOf(state, ON.others);
  const at = where(state, ON.others);
  const what = isLate ? 'late wallet' : 'wallet';
  if (data.wallet !== null) return { words: `the ${what} is loaded already${at}`, state };
  if (isLate && !rules.without.has('fillDeadline')) return { words: `Redis refuses the late wallet${at}`, state };
  // Numbers do not tell: a deposed primary gives its next flush the number that the new one gives to another.
  const isKnown = data.mark === its.saw || data.mark === its.lastFlush;
  if (!isKnown && !rules.without.has('fillMark')) {
    return { words: `Redis refuses the ${what}${at}: it has another mark`, state };
  }
  const filled = withData(state, ON.others, { ...data, wallet: its.fill });
  const isOlder = data.mark !== 0 && !pg.journal.includes(data.mark);
  const next = isOlder ? broken(filled, 'a wallet was loaded from an older Postgres') : filled;
  return { words: `Redis takes the ${what}${at}: ${its.fill.balance}`, state: next };
}

const isLocked = ({ writer }: State): boolean => writer.at === 'locked';

/** Compares the account at one instant, and repairs it if the rule allows that. */
export function compareAndRepair(state: State, rules: Rules): Step[] {
  const { comparison, lateRepair } = state;
  const late = lateRepair === null ? [] : [repair(withParts(state, { lateRepair: null }), lateRepair, true, rules)];
  if (comparison === null) return [...late, ...begin(state, rules)];
  const { kind, strikes } = comparison;
  const lastRun = rules.leavesOut ? runOf(comparison) : null;
  const done = withParts(state, { comparison: null, lastRun });
  if (kind === 'clean') {
    const next = withPg(done, countedAnew(done, { ...verified(state.pg, comparison, rules), reported: false }));
    const isNew = strikes === state.ghost.strikes;
    const ended = isNew ? withGhost(next, { changed: false, exact: true }) : next;
    return [...late, { words: 'the comparison ends clean', state: ended }];
  }
  if (kind === 'repair') return [...late, repair(done, comparison, false, rules)];
  // What is reported waits for an operator. The rest of the shard, and its sweep, must not.
  const isAllElseRight = comparison.storedHolds === 0 && comparison.lostDebits === 0;
  const pg = isAllElseRight ? verified(state.pg, comparison, rules) : state.pg;
  const told = repair(withPg(done, countedAnew(done, { ...pg, reported: true })), comparison, false, rules);
  return [...late, { ...told, words: `The drift is reported. ${told.words}` }];
}

/** The shard is verified, and the account perhaps left in doubt; unless another comparison that began later has ended. */
function verified(pg: Pg, { began, stays }: NonNullable<Comparison>, { without }: Rules): Pg {
  if (pg.verified > began) return pg;
  const history = verifiedBy(historyOf(pg), without.has('began') ? pg.doubt : began);
  return { ...pg, verified: history.verified, left: stays };
}

/** Doubts are only compared with each other. So they are counted from the last verified one, where no other number is known: states stay few. */
function countedAnew({ copy, right, lateRepair }: State, pg: Pg): Pg {
  if (pg.verified === 0 || copy !== null || right !== null || lateRepair !== null) return pg;
  return { ...pg, doubt: pg.doubt - pg.verified, verified: 0 };
}

function repair(state: State, its: NonNullable<Comparison>, isLate: boolean, rules: Rules): Step {
  const at = where(state, ON.others);
  const { data } = serverOf(state, ON.others);
  const { wallet } = data;
  const what = isLate ? 'late repair' : 'repair';
  const hasTicket = wallet !== null && (wallet.ticket === its.ticket || rules.without.has('ticket'));
  // Else a lost Postgres may have trimmed what the reading found.
  const hasMark = data.mark === its.saw || data.mark === its.lastFlush || rules.without.has('repairMark');
  if (!hasTicket || !hasMark || (isLate && !rules.without.has('repairDeadline'))) {
    return { words: `Redis refuses the ${what}${at}`, state: forgetTicket(state, its.ticket) };
  }
  const next = repaired(state, its, data, wallet, rules);
  return { words: `Redis makes the ${what}${at}`, state: forgetTicket(next, its.ticket) };
}

function repaired(state: State, its: NonNullable<Comparison>, data: Data, wallet: Wallet, rules: Rules): State {
  const holds = rules.without.has('storedHolds') ? data.holds : data.holds & ~its.storedHolds;
  const isMoneyMoved = its.drift !== 0 || its.freeDrift !== 0 || its.periodDrift !== 0 || its.spentDrift !== 0;
  const repairs = !rules.without.has('repairSpent');
  const isSamePeriod = wallet.period === its.period || rules.without.has('repairPeriod');
  const corrected = {
    ...wallet,
    balance: wallet.balance - its.drift - its.lostDebits - (isMoneyMoved && rules.repairsTooMuch ? 1 : 0),
    freeUsed: wallet.freeUsed - its.freeDrift,
    period: wallet.period - (isSamePeriod && repairs ? its.periodDrift : 0),
    spent: wallet.spent - (isSamePeriod && repairs ? its.spentDrift : 0),
    debit: its.lostDebits === 0 ? wallet.debit : its.debit,
    tampered: isMoneyMoved ? wallet.tampered - its.tampered : wallet.tampered,
    ticket: 0,
  };
  const next = withData(state, ON.others, { ...data, holds, wallet: corrected });
  if (!isMoneyMoved) return next;
  if (data.mark !== 0 && !state.pg.journal.includes(data.mark))
    return broken(next, 'a wallet was repaired by an older Postgres');
  if (!state.ghost.changed) return broken(next, 'a drift was repaired that cannot be Redis’s');
  if (state.pg.stored.includes(STORED.aside)) return broken(next, 'a drift of a rejected event was repaired');
  const left = compareAt(serverOf(next, ON.others).data, next.pg, rules);
  const isCounted = left.freeDrift === 0 && (!isSamePeriod || (left.periodDrift === 0 && left.spentDrift === 0));
  if (left.drift !== corrected.tampered || !isCounted) return broken(next, 'a wallet was repaired wrongly');
  const isHere = serverOf(state, ON.others) === state.redis;
  return isHere && its.strikes === state.ghost.strikes ? withGhost(next, { exact: true }) : next;
}

/** A ticket that no repair will ask for is no ticket: so states stay few. */
function forgetTicket(state: State, ticket: number): State {
  const forget = (data: Data): Data =>
    data.wallet === null || data.wallet.ticket !== ticket
      ? data
      : intern({ ...data, wallet: { ...data.wallet, ticket: 0 } });
  const server = <T extends Instance | null>(its: T): T => (its === null ? its : { ...its, data: forget(its.data) });
  return withParts(state, { redis: server(state.redis), old: server(state.old), saved: state.saved.map(forget) });
}

function begin(state: State, rules: Rules): Step[] {
  const server = serverOf(state, ON.others);
  const { data } = server;
  const at = where(state, ON.others);
  if (isLocked(state) && !rules.without.has('loadLock')) return [];
  const verdict = verdictOn(server, state.pg, rules);
  if (verdict === 'postgres is older') return [];
  const isDoubt = verdict === 'redis may have changed';
  const seen = { mark: null, dataId: dataIdOf(server, rules) };
  const pg: Pg = isDoubt
    ? {
        ...state.pg,

        dataId: seen.dataId,
        doubt: withDoubt(historyOf(state.pg), seen).doubt,
      }
    : state.pg;
  const history = accountHistoryOf(pg);
  const found = compareAt(data, pg, rules);
  const storedHolds = rules.without.has('storedHolds') ? 0 : found.storedHolds;
  const isDrift = found.drift !== 0 || found.freeDrift !== 0 || found.periodDrift !== 0 || found.spentDrift !== 0;
  const obstacles = {
    hasRejectedEvent: pg.stored.includes(STORED.aside) && !rules.without.has('rejected'),
    isAheadOfPostgres: found.isAhead && !rules.without.has('ahead'),
  };
  const judged = rules.without.has('doubtOnly') ? { ...history, doubt: history.verified + 1 } : history;
  const may = mayRepair(judged, obstacles);
  const stays = staysInDoubt(history, obstacles) && !rules.without.has('staysInDoubt');
  const isClean = !isDrift && storedHolds === 0 && found.lostDebits === 0;
  const kind = isClean ? 'clean' : isDrift && !may ? 'report' : 'repair';
  const isBeside = storedHolds !== 0 || found.lostDebits !== 0;
  const hasWork =
    isDoubt ||
    kind === 'repair' ||
    isInDoubt(historyOf(pg)) ||
    pg.left !== stays ||
    pg.reported === isClean ||
    isBeside;
  const posting = postingOf(pg);
  if (hasWork && isLeftOut(state, posting, isInDoubt(historyOf(pg)), rules)) {
    return [
      {
        words: 'a comparison is left out',
        state: broken(state, 'a comparison was left out that would have found something'),
      },
    ];
  }
  const isQuiet = rules.without.has('leaveOutTwo') || (state.hydration === null && state.writer.at !== 'stored');
  const isNews = rules.leavesOut === true && runOf({ posting, kind, isQuiet }) !== state.lastRun;
  if (!hasWork && !isNews) return [];
  const ticket = isClean ? 0 : freshTicket(state);
  const comparison = intern({
    began: pg.doubt,
    strikes: state.old === null ? state.ghost.strikes : -1,
    kind,
    ticket,
    stays,
    posting,
    isQuiet,
    drift: may ? found.drift : 0,
    freeDrift: may ? found.freeDrift : 0,
    period: data.wallet?.period ?? 0,
    periodDrift: may ? found.periodDrift : 0,
    spentDrift: may ? found.spentDrift : 0,
    lostDebits: found.lostDebits,
    debit: settledWallet(pg, rules).debit,
    storedHolds,
    tampered: data.wallet?.tampered ?? 0,
    saw: data.mark,
    lastFlush: lastFlushOf(pg),
  } as const);
  const next = withParts(withPg(state, pg), { comparison });
  const wallet = data.wallet as Wallet;
  const words = `a comparison begins${at}: ${verdict}, ${isClean ? 'clean' : `drift ${found.drift}`}`;
  return [{ words, state: isClean ? next : withData(next, ON.others, { ...data, wallet: { ...wallet, ticket } }) }];
}

/** The run before it found the same posting if nothing was under way when it began: what was, has ended between the two. */
const runOf = ({ posting, kind, isQuiet }: Pick<NonNullable<Comparison>, 'posting' | 'kind' | 'isQuiet'>): Run =>
  intern({ newestPosting: posting, newestBefore: isQuiet ? posting : -1, isClean: kind === 'clean' });

/** Whether a comparison is left out that may not be. What somebody writes by hand, and a Postgres that went back unnoticed, may be missed. */
function isLeftOut(state: State, newestPosting: number, isDoubt: boolean, { without }: Rules): boolean {
  const { lastRun, ghost, redis } = state;
  if (redis.data.wallet?.tampered || (ghost.rewound && !ghost.accepted)) return false;
  const last =
    lastRun !== null && without.has('leaveOutPosted')
      ? { ...lastRun, newestPosting, newestBefore: newestPosting }
      : lastRun;
  return mayLeaveOut(last, { newestPosting, isInDoubt: isDoubt && !without.has('leaveOutDoubt') });
}

/** The smallest number that is nowhere, so that states in which only dead tickets differ are one. */
function freshTicket({ redis, old, saved, comparison, lateRepair }: State): number {
  const taken = [redis.data, ...saved, ...(old === null ? [] : [old.data])].map(({ wallet }) => wallet?.ticket);
  taken.push(comparison?.ticket, lateRepair?.ticket);
  let ticket = 1;
  while (taken.includes(ticket)) ticket++;
  return ticket;
}

/** On new doubt a wallet leaves Redis, and is loaded again exactly: Postgres is asked first, and then Redis judges and deletes at once. */
export function drop(state: State, rules: Rules): Step[] {
  const { dropping, pg } = state;
  const server = serverOf(state, ON.others);
  const at = where(state, ON.others);
  if (dropping !== null) return [dropNow(withParts(state, { dropping: null }), dropping, rules)];
  if (rules.dropsNone) return [];
  if (server.data.wallet === null || verdictOn(server, pg, rules) !== 'as known') return [];
  // What is under way ends with a trim, and then the script finds another mark.
  const { holds, stream } = server.data;
  if ((holds !== 0 || stream.length > 0) && !rules.without.has('dropIdle')) return [];
  const hasBegunDebit = pg.debit === PG_DEBIT.begun && !rules.without.has('dropDebit');
  if (!mayDrop(accountHistoryOf(pg), { holds: 0, streamed: 0, hasBegunDebit })) return [];
  const asked = intern({
    saw: server.data.mark,
    lastFlush: lastFlushOf(pg),
    creditSeq: Math.min(pg.credits, 1),
    isDebitEnded: pg.debit === PG_DEBIT.taken || pg.debit === PG_DEBIT.refused,
  });
  return [{ words: `a wallet is to be dropped${at}`, state: withParts(state, { dropping: asked }) }];
}

function dropNow(state: State, its: NonNullable<Dropping>, rules: Rules): Step {
  const { without } = rules;
  const server = serverOf(state, ON.others);
  const at = where(state, ON.others);
  const { data } = server;
  const { wallet } = data;
  const isIdle = (data.holds === 0 && data.stream.length === 0) || without.has('dropIdle');
  const hasMark = data.mark === its.saw || data.mark === its.lastFlush || without.has('dropMark');
  const knowsDebit = wallet?.debit === WALLET_DEBIT.none || its.isDebitEnded;
  const isKnown = wallet !== null && ((wallet.creditSeq <= its.creditSeq && knowsDebit) || without.has('dropAhead'));
  if (!isIdle || !hasMark || !isKnown) return { words: `the wallet stays${at}`, state };
  const next = withData(state, ON.others, { ...data, wallet: null });
  return { words: `the wallet is dropped${at}`, state: state.old === null ? withGhost(next, { exact: true }) : next };
}
