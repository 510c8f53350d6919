// The state of the model: one shard, one account, two calls. Its parts are interned: equal parts are the same object with the same
// number, so a state is compared by a few numbers, and what depends on two parts only is computed once.

import type { Run } from '../../src/ledger/history/may-leave-out.ts';

export const AMOUNTS = {
  initial: 9,
  calls: [1, 2],
  captured: 1,
  credit: 4,
  otherCredit: 32,
  debit: 8,
  tampered: 16,
} as const;

/** 0 is no mark; otherwise `flushId * 100 + token`. */
export type MarkNumber = number;

/** An entry of the stream: see `entryOf`. */
export type Event = number;

/** How an event ends its call. `late`: charged, and counted in the later period of the budget. */
export const END = { refunded: 0, charged: 1, captured: 2, late: 3 } as const;
export type End = (typeof END)[keyof typeof END];

/** How Postgres has stored a call. */
export const STORED = { not: 0, charged: 1, refunded: 2, aside: 3, captured: 4, late: 5 } as const;

/** In `credits`: the refund of the first call, whole. */
export const REFUND = 3;

/** Decided debits, as numbers of outcomes: of a wallet, and of Postgres. */
export const WALLET_DEBIT = { none: 0, taken: 1, refused: 2 } as const;
export const PG_DEBIT = { none: 0, begun: 1, taken: 2, refused: 3 } as const;

export type Wallet = {
  readonly balance: number;
  readonly creditSeq: number;
  readonly debit: number;
  readonly freeUsed: number;
  /** The budget's present period, and what was spent in it. */
  readonly period: number;
  readonly spent: number;
  /** Ghost: what a bug or somebody put into the wallet. */
  readonly tampered: number;
  readonly ticket: number;
};

/** In `holds`: the hold of the first call names the later period of the budget, as that of the second does. */
export const LATE = 4;

/** What a Redis has: its file, its replica and it itself may have different ones. */
export type Data = {
  readonly wallet: Wallet | null;
  /** A bit for each call, and `LATE`. */
  readonly holds: number;
  readonly stream: readonly Event[];
  readonly mark: MarkNumber;
  /** Who has the idempotency key of the calls: see claims.ts. */
  readonly claim: number;
};

export type Instance = { readonly data: Data; readonly run: number; readonly replication: number };

/** What Postgres has. The settled balance follows from it. */
export type Pg = {
  /** For each call one of `STORED`. */
  readonly stored: readonly number[];
  /** 0 none, 1 one, 2 one that an operator made after Postgres had lost the first: it has its number and another amount; 3 a refund of the first call. */
  readonly credits: number;
  readonly debit: number;
  /** Marks of all flushes, in order. */
  readonly journal: readonly MarkNumber[];
  readonly dataId: string;
  readonly doubt: number;
  readonly verified: number;
  /** The account stays in doubt although its shard was verified. */
  readonly left: boolean;
  /** The account's drift was reported as unattributed. */
  readonly reported: boolean;
};

export type Writer =
  | { readonly at: 'idle' }
  | { readonly at: 'read'; readonly batch: readonly Event[] }
  | {
      readonly at: 'locked';
      readonly batch: readonly Event[];
      readonly saw: MarkNumber;
      readonly dataId: string;
      readonly isDoubt: boolean;
    }
  | {
      readonly at: 'stored';
      readonly batch: readonly Event[];
      readonly saw: MarkNumber;
      readonly mark: MarkNumber;
      /** An operator has accepted a Postgres that lacks this flush (ghost). */
      readonly isGivenUp?: boolean;
    };

export type Hydration = {
  readonly fill: Wallet;
  readonly saw: MarkNumber;
  readonly lastFlush: MarkNumber;
} | null;

export type Comparison = {
  readonly began: number;
  /** `ghost.strikes` at its beginning; -1: what is compared may be an old master (ghost). */
  readonly strikes: number;
  readonly kind: 'clean' | 'repair' | 'report';
  readonly ticket: number;
  /** Whether the account stays in doubt. */
  readonly stays: boolean;
  /** The youngest row of the journal when it began. */
  readonly posting: number;
  /** Neither a trim nor a loading was under way then. */
  readonly isQuiet: boolean;
  readonly drift: number;
  readonly freeDrift: number;
  /** The period that the reading found the wallet to count in. */
  readonly period: number;
  readonly periodDrift: number;
  readonly spentDrift: number;
  readonly lostDebits: number;
  /** The debit that the wallet must have. */
  readonly debit: number;
  readonly storedHolds: number;
  /** What the reading found tampered with (ghost). */
  readonly tampered: number;
  readonly saw: MarkNumber;
  readonly lastFlush: MarkNumber;
} | null;

/** What the script that drops a wallet is told: the marks that Redis may have, and what Postgres knew when it was asked. */
export type Dropping = {
  readonly saw: MarkNumber;
  readonly lastFlush: MarkNumber;
  readonly creditSeq: number;
  readonly isDebitEnded: boolean;
} | null;

/** What a gateway knows of each call; after its end a ghost that says what the caller was told. `looked`: only where a check is off. */
export const CALL = { new: 0, open: 1, charged: 2, refunded: 3, died: 4, lost: 5, captured: 6, looked: 7 } as const;

/** The process that carries a debit out: what the wallet answered. */
export type DebitAnswer = number;

/** What only the checks know. */
export type Ghost = {
  /** A bit for each call whose event a fault took from both stores. */
  readonly lost: number;
  /** A bit for each call whose claim a fault took, or a deposed master got. */
  readonly unclaimed: number;
  /** How often Redis's data were changed by a fault. */
  readonly strikes: number;
  /** Redis may have changed since the last clean comparison. */
  readonly changed: boolean;
  /** The wallet was dropped, repaired or found clean since the last fault. */
  readonly exact: boolean;
  /** Postgres went back at some time. */
  readonly rewound: boolean;
  /** An operator has accepted it since. */
  readonly accepted: boolean;
  /** A credit was made. */
  readonly credited: boolean;
  /** A promise that was broken; '': none. */
  readonly broken: string;
};

/** Who has a connection of its own to Redis. Each leaves a deposed master when it notices, at any time. */
export const ON = { gateway: 1, writer: 2, others: 4 } as const;

export type State = {
  readonly redis: Instance;
  /** A deposed master that still answers those who have not noticed. */
  readonly old: Instance | null;
  /** Who has not noticed: a bit for each of `ON`. */
  readonly onOld: number;
  /** Redis's data as they were when its file, or its replica, stopped following: oldest first. */
  readonly saved: readonly Data[];
  readonly pg: Pg;
  /** Postgres as it was copied; `warned`: a standby for which commits ought to have waited. */
  readonly copy: { readonly pg: Pg; readonly warned: boolean } | null;
  /** Postgres as it was before it went back. */
  readonly right: Pg | null;
  readonly writer: Writer;
  /** A writer that was suspended, or that is at a deposed primary. */
  readonly late: Writer;
  readonly hydration: Hydration;
  readonly comparison: Comparison;
  readonly dropping: Dropping;
  /** The last comparison, where the scenario leaves some out. */
  readonly lastRun: Run | null;
  /** Sent by processes that were suspended: Postgres has ended their transaction, and so their lock. */
  readonly lateFill: Hydration;
  readonly lateRepair: Comparison;
  readonly calls: readonly number[];
  readonly answer: DebitAnswer;
  readonly faultsLeft: number;
  readonly ghost: Ghost;
};

/**
 * A state with other parts. All states are made here, so that V8 gives them one hidden class: to each `{ ...state }` in the code it would
 * give another one, and then copying and reading states takes half as long again.
 */
export function withParts(state: State, parts: Partial<State>): State {
  const next: { -readonly [K in keyof State]: State[K] } = {
    redis: state.redis,
    old: state.old,
    onOld: state.onOld,
    saved: state.saved,
    pg: state.pg,
    copy: state.copy,
    right: state.right,
    writer: state.writer,
    late: state.late,
    hydration: state.hydration,
    comparison: state.comparison,
    dropping: state.dropping,
    lastRun: state.lastRun,
    lateFill: state.lateFill,
    lateRepair: state.lateRepair,
    calls: state.calls,
    answer: state.answer,
    faultsLeft: state.faultsLeft,
    ghost: state.ghost,
  };
  for (const name in parts) next[name as 'onOld'] = parts[name as 'onOld'] as number;
  return next;
}

export type Step = { readonly words: string; readonly state: State };

const numbers = new Map<object, number>();
const known = new Map<string, object>();

/** @returns the one object of this content */
export function intern<T extends object | null>(part: T): T {
  if (part === null || numbers.has(part)) return part;
  const key = textOf(part);
  const found = known.get(key);
  if (found !== undefined) return found as T;
  const own = copyOf(part);
  known.set(key, own);
  numbers.set(own, known.size);
  return own as T;
}

/** A copy with the hidden class of all parts of its kind, whatever code has made this one: see `withParts`. */
function copyOf(part: object): object {
  const copy: Record<string, unknown> = {};
  for (const name in part) {
    const value = (part as Readonly<Record<string, unknown>>)[name];
    copy[name] = typeof value === 'object' && value !== null && !Array.isArray(value) ? copyOf(value) : value;
  }
  return copy;
}

/** As `JSON.stringify`, without the names: the parts differ in the number and types of their values. */
function textOf(part: object): string {
  let text = '';
  for (const name in part) {
    const value = (part as Readonly<Record<string, unknown>>)[name];
    text += typeof value === 'object' && value !== null ? `(${textOf(value)}),` : `${value},`;
  }
  return text;
}

/** The number of an interned part. */
export function numberOf(part: object | null): number {
  return part === null ? 0 : (numbers.get(part) ?? (numbers.get(intern(part)) as number));
}

/** Two numbers that tell states apart, into `into`. */
export function fingerprint(state: State, into: Uint32Array): void {
  let [one, two] = [0x9e3779b9, 0x85ebca6b];
  const mix = (value: number): void => {
    one = Math.imul(one ^ value, 0xcc9e2d51);
    one = (one << 15) | (one >>> 17);
    two = Math.imul(two + value + (two >>> 13), 0x1b873593) ^ (two >>> 16);
    two = (two << 13) | (two >>> 19);
  };
  const server = (its: Instance | null): void => {
    mix(its === null ? 0 : numberOf(its.data) + 1);
    if (its !== null) mix(its.run * 32 + its.replication);
  };
  server(state.redis);
  server(state.old);
  mix(state.onOld);
  mix(state.saved.length);
  for (const data of state.saved) mix(numberOf(data));
  mix(numberOf(state.pg));
  mix(state.copy === null ? 0 : numberOf(state.copy.pg) * 2 + (state.copy.warned ? 1 : 0));
  for (const part of [
    state.right,
    state.writer,
    state.late,
    state.hydration,
    state.comparison,
    state.dropping,
    state.lastRun,
    state.lateFill,
    state.lateRepair,
  ]) {
    mix(numberOf(part));
  }
  mix(numberOf(state.ghost));
  mix(state.calls.reduce((all, call) => all * 8 + call, 1) * 64 + state.answer * 16 + state.faultsLeft);
  into[0] = one ^ (two >>> 7);
  into[1] = two ^ (one >>> 11);
}

export function start(calls: number, faults: number, dataId: string): State {
  return {
    redis: FIRST_REDIS,
    old: null,
    onOld: 0,
    saved: [],
    pg: intern({
      stored: Array(calls).fill(0),
      credits: 0,
      debit: PG_DEBIT.none,
      journal: [],
      dataId,
      doubt: 0,
      verified: 0,
      left: false,
      reported: false,
    }),
    copy: null,
    right: null,
    writer: IDLE,
    late: IDLE,
    hydration: null,
    comparison: null,
    dropping: null,
    lastRun: null,
    lateFill: null,
    lateRepair: null,
    calls: Array(calls).fill(CALL.new),
    answer: 0,
    faultsLeft: faults,
    ghost: intern({
      lost: 0,
      unclaimed: 0,
      strikes: 0,
      changed: false,
      exact: true,
      rewound: false,
      accepted: false,
      credited: false,
      broken: '',
    }),
  };
}

export const NO_DATA: Data = { wallet: null, holds: 0, stream: [], mark: 0, claim: 0 };
export const FIRST_REDIS: Instance = { data: intern(NO_DATA), run: 1, replication: 1 };
export const IDLE: Writer = intern({ at: 'idle' });
