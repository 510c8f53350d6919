// What may go wrong. A history has few faults, and each counts from its beginning: a cut file or a lagging replica begins at the moment
// after which it gets nothing more (`saved`).

import { broken, withGhost, withPg } from './actors.ts';
import { FAULTS, type Fault, type Rules } from './checks.ts';
import { told } from './claims.ts';
import { callOf, callsOf, chargeOf, entryOf, verdictOn } from './judging.ts';
import { nextMark } from './ledger.ts';
import { isAnyLost, withLosses } from './losses.ts';
import {
  CALL,
  type Data,
  END,
  type End,
  IDLE,
  type Instance,
  intern,
  LATE,
  NO_DATA,
  ON,
  type State,
  type Step,
  type Writer,
  withParts,
} from './state.ts';

const ALL = ON.gateway | ON.writer | ON.others;

export function faults(state: State, rules: Rules): Step[] {
  const steps = [...strikes(state, rules)];
  if (state.faultsLeft === 0) return steps;
  const is = (fault: Fault): boolean => rules.faults.has(fault);
  const add = (words: string, next: State): void => {
    steps.push({ words, state: withParts(next, { faultsLeft: state.faultsLeft - 1 }) });
  };
  const { redis, old, saved, pg, copy, writer, hydration, comparison } = state;
  if ((is('cut') || is('torn') || is('failover') || is('swap')) && saved.at(-1) !== redis.data) {
    add(
      'FAULT from here on nothing reaches the file and the replica of Redis',
      withParts(state, { saved: [...saved, redis.data] }),
    );
  }
  if (is('flushall'))
    add('FAULT FLUSHALL', redisFault(state, withParts(state, { redis: { ...redis, data: intern(NO_DATA) } })));
  if (is('oldBack') && old !== null) {
    add('FAULT the old master is back', redisFault(state, withParts(state, { redis: old, old: null, onOld: 0 })));
  }
  if (is('tamper') && redis.data.wallet !== null && redis.data.wallet.tampered === 0) {
    const { wallet } = redis.data;
    const tampered = { ...wallet, balance: wallet.balance + 16, tampered: 16 };
    add(
      'FAULT somebody adds 16 to the wallet',
      withParts(state, { redis: { ...redis, data: intern({ ...redis.data, wallet: tampered }) } }),
    );
  }
  if (is('writer') && writer.at === 'stored') {
    if (state.late.at === 'idle')
      add('FAULT the writer is suspended', withParts(state, { writer: IDLE, late: writer }));
    add('FAULT the writer is killed', withParts(state, { writer: IDLE }));
  }
  if (is('late') && hydration !== null && state.lateFill === null) {
    add(
      'FAULT the gateway is suspended while it loads the wallet',
      withParts(state, { hydration: null, lateFill: hydration }),
    );
  }
  if (is('late') && comparison !== null && comparison.kind !== 'clean' && state.lateRepair === null) {
    add('FAULT the comparison is suspended', withParts(state, { comparison: null, lateRepair: comparison }));
  }
  if (copy === null && state.right === null) {
    if (is('rewind')) add('FAULT Postgres is copied', withParts(state, { copy: { pg, warned: false } }));
    if (is('warned'))
      add(
        'FAULT the standby stops following, and its waits are cancelled',
        withParts(state, { copy: { pg, warned: true } }),
      );
  }
  return steps;
}

/** The ends of faults that have begun. */
function strikes(state: State, rules: Rules): Step[] {
  const steps: Step[] = [];
  const { redis, old, saved, copy, right } = state;
  for (const [at, data] of saved.entries()) {
    const left = saved.slice(0, at);
    const ids = { run: redis.run, replication: redis.replication };
    // No id comes again, also not that of a master that has ended.
    const newest = state.ghost.strikes + 2;
    const with_ = (server: Instance, more: Partial<State> = {}): State =>
      redisFault(state, withParts(state, { saved: left, redis: server, ...more }));
    if (rules.faults.has('cut')) {
      steps.push({ words: `FAULT ${FAULTS.cut}`, state: with_({ data, run: newest, replication: newest }) });
    }
    for (const half of rules.faults.has('torn') ? halvesOf(state, data, rules) : []) {
      steps.push({ words: `FAULT ${FAULTS.torn}`, state: with_({ data: half, run: newest, replication: newest }) });
    }
    if (rules.faults.has('swap'))
      steps.push({ words: `FAULT ${FAULTS.swap}`, state: with_({ ...ids, data, replication: newest }) });
    if (rules.faults.has('failover') && old === null) {
      const next = with_({ data, run: newest, replication: newest }, { old: redis, onOld: ALL });
      // Two masters may both end a call that is open in the newer one. The end that is stored first counts.
      const open = data.holds & ~LATE;
      const { lost, unclaimed } = next.ghost;
      const both = withGhost(next, { lost: lost | open, unclaimed: rules.keyed ? unclaimed | open : 0 });
      steps.push({ words: `FAULT ${FAULTS.failover}`, state: both });
    }
  }
  if (copy !== null) {
    const { writer } = state;
    const rewound = withParts(state, {
      pg: copy.pg,
      right: copy.warned ? null : state.pg,
      copy: null,
      comparison: null,
      hydration: null,
    });
    const next = pgFault(
      state,
      withGhost(rewound, { rewound: true, accepted: false, changed: true, exact: false }),
      copy.warned,
    );
    const words = copy.warned ? 'FAULT the standby becomes primary' : `FAULT ${FAULTS.rewind}`;
    steps.push({ words, state: withParts(next, { writer: writer.at === 'locked' ? IDLE : writer }) });
    if (rules.faults.has('deposed') && !copy.warned && writer.at !== 'idle' && state.late.at === 'idle') {
      steps.push({
        words: `${words}, and the writer stays at the deposed primary`,
        state: withParts(next, { writer: IDLE, late: writer }),
      });
    }
  }
  if (right !== null && !copy) steps.push(...recoveries(state, right));
  return steps;
}

/**
 * Redis's data with the event of a call that had ended by then, but with its hold, too. What such a half has changed in the wallet, the
 * repair of a crash takes out as any drift.
 */
function halvesOf({ redis, calls, faultsLeft }: State, data: Data, rules: Rules): Data[] {
  const ends = new Map<number, End>([
    [CALL.charged, (data.holds & LATE) === 0 ? END.charged : END.late],
    [CALL.captured, END.captured],
    [CALL.refunded, END.refunded],
  ]);
  const ended = callsOf(data.holds).flatMap((call) => {
    const end = ends.get(calls[call] as number);
    if (end === undefined) return [];
    return [intern({ ...data, stream: [...data.stream, entryOf(call, end, redis, faultsLeft)] })];
  });
  return rules.keyed ? [...ended, ...halfAdmissions(calls, data, rules)] : ended;
}

/** Redis's data with the hold of a call that had been admitted by then, and without its claim. */
function halfAdmissions(calls: readonly number[], data: Data, rules: Rules): Data[] {
  const { wallet, holds, stream } = data;
  if (wallet === null || told(data, rules) !== 'free') return [];
  return calls.flatMap((how, call) => {
    const price = chargeOf(call, rules);
    const isBefore = (holds & (1 << call)) !== 0 || stream.some((event) => callOf(event) === call);
    if (how === CALL.new || isBefore || wallet.balance < price) return [];
    const held = { ...wallet, balance: wallet.balance - price };
    return [intern({ ...data, wallet: held, holds: holds | (1 << call) })];
  });
}

/** How Postgres gets right again. */
function recoveries(state: State, right: NonNullable<State['right']>): Step[] {
  // The session of a writer there ends. What it has committed it may still trim.
  const late = state.late.at === 'stored' ? state.late : IDLE;
  const back = withParts(state, {
    pg: right,
    right: null,
    late,
    comparison: null,
    hydration: null,
    writer: state.writer.at === 'locked' ? IDLE : state.writer,
  });
  const given = withParts(state, { right: null, late });
  return [
    {
      words: 'the right Postgres is back',
      state: pgFault(state, withGhost(back, { changed: true, exact: false }), false),
    },
    { words: 'the newer Postgres is given up', state: pgFault(state, given, false) },
  ];
}

/** What operators do after faults, and what happens to a deposed master. */
export function recover(state: State, rules: Rules): Step[] {
  const steps: Step[] = [];
  const { redis, old, onOld, pg } = state;
  if (old !== null) {
    if (onOld & ON.gateway)
      steps.push({
        words: 'the gateway notices the new master',
        state: withParts(state, { onOld: onOld & ~ON.gateway }),
      });
    if (onOld & ON.writer)
      steps.push({
        words: 'the writer notices the new master',
        state: withParts(state, { onOld: onOld & ~ON.writer }),
      });
    if (onOld & ON.others)
      steps.push({ words: 'the others notice the new master', state: withParts(state, { onOld: onOld & ~ON.others }) });
    if (onOld === 0) steps.push(oldEnds(state));
  }
  if (state.copy?.warned) steps.push({ words: 'the standby follows again', state: withParts(state, { copy: null }) });
  if (state.right === null && verdictOn(redis, pg, rules) === 'postgres is older') {
    // Redis gets a mark of this act, or a trim of the lost Postgres that comes late would find the mark that it saw.
    const mark = nextMark(state, pg);
    const here = { ...redis, data: rules.without.has('acceptMark') ? redis.data : intern({ ...redis.data, mark }) };
    const { mark: left } = here.data;
    const journal = [...pg.journal, ...(left === mark ? [] : [left]), mark];
    const givenUp = (its: Writer): Writer =>
      its.at === 'stored' && !pg.journal.includes(its.mark) ? intern({ ...its, isGivenUp: true }) : its;
    const ended = withParts(state, { redis: here, writer: givenUp(state.writer), late: givenUp(state.late) });
    const accepted = withPg(ended, { ...pg, journal, doubt: pg.doubt + 1 });
    steps.push({
      words: 'an operator accepts the older Postgres',
      state: withGhost(accepted, { accepted: true, changed: true, exact: false, strikes: state.ghost.strikes + 1 }),
    });
  }
  return steps;
}

const oldEnds = (state: State): Step => ({
  words: 'the old master ends',
  state: withLosses(state, withParts(state, { old: null })),
});

/**
 * A deposed master that everybody has left, and that no fault brings back, changes nothing any more. So it ends at once: this leaves out
 * only histories in which it ends later. What a writer has read there, and is about to store, is not lost yet.
 */
export function forget(state: State, rules: Rules): Step[] {
  const { old, onOld, writer, faultsLeft } = state;
  const isForgotten = old !== null && onOld === 0 && (faultsLeft === 0 || !rules.faults.has('oldBack'));
  return isForgotten && writer.at !== 'locked' ? [oldEnds(state)] : [];
}

const redisFault = (before: State, after: State): State =>
  withGhost(withLosses(before, after), { changed: true, exact: false, strikes: before.ghost.strikes + 1 });

function pgFault(before: State, after: State, mustNotLose: boolean): State {
  if (mustNotLose && isAnyLost(before, after))
    return broken(after, 'a call was lost that the standby ought to have had');
  return withLosses(before, after);
}
