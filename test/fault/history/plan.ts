// The plan of a history: two or three faults of the stores and writers, one after the other or at once. After the second fault, what was
// seen before the first proves nothing any more.

import { CLOCKED, type Clocked } from '../clocks/clocks.ts';
import type { ClusterFault } from '../cluster/plan.ts';
import { describePlan, type Fault, type Plan } from '../plan.ts';
import { Random } from '../random.ts';
import { drawRefunds } from '../refunds.ts';
import { drawTrees } from '../trees.ts';

/** How long something is cut off before the fault strikes. */
type Timing = { readonly atMs: number; readonly forMs: number };

export type RedisFault = Timing &
  (
    | /** Redis crashes, and the end of its file is lost: what was written in `forMs`, or a part of it. */
    { readonly kind: 'file cut'; readonly part: number }
    /** A lagging replica takes over. The old master is dead, or lives on while clients leave it one after the other. */
    | { readonly kind: 'replica promoted'; readonly isAlive: boolean }
    /** A replica that lags takes over, and after `backMs` clients are led to the old master again. */
    | { readonly kind: 'old master back'; readonly backMs: number }
    /** The master follows its lagging replica for a moment: same process, older data. */
    | { readonly kind: 'a, b, a' }
    | { readonly kind: 'flushall' }
  );

const POSTGRES = ['rewound', 'standby promoted', 'primary deposed', 'waits cancelled'] as const;

export const isOfPostgres = (fault: StoreFault): fault is PostgresFault => POSTGRES.some((kind) => kind === fault.kind);

export const isOfRedis = (fault: StoreFault): fault is RedisFault => !isOfPostgres(fault) && !isOfNode(fault);

export const isOfNode = (fault: StoreFault): fault is ClusterFault => 'group' in fault;

export type PostgresFault = Timing & {
  readonly kind:
    | /** The data folder is exchanged with a copy of `forMs` ago. */ 'rewound'
    /** A standby that lags takes over. */
    | 'standby promoted'
    /** The same, but a writer's session stays with the old primary for a while. */
    | 'primary deposed'
    /** Commits wait for a standby that is away, and the waits are cancelled. Then it follows again, or takes over and has it all. */
    | 'waits cancelled';
  /** How long the older one is used before this ends as `end` says. */
  readonly olderMs: number;
  readonly end: 'right one back' | 'older one accepted';
};

export type WriterFault = Timing & {
  readonly kind: 'suspended' | 'killed';
  readonly which: 0 | 1;
};

/** The clocks of these programs jump ahead, and back. */
export type ClockFault = Timing & { readonly whose: readonly Clocked[] };

export type StoreFault = RedisFault | PostgresFault | ClusterFault;

export type History = {
  /**
   * One after the other, each `atMs` after the end of the one before. Faults of both stores at once are left out: a Redis that loses its
   * mark while Postgres is older leaves no trace (docs/decisions/0062).
   */
  readonly stores: readonly StoreFault[];
  readonly writers: readonly WriterFault[];
  readonly clocks: readonly ClockFault[];
  readonly hasTwoWriters: boolean;
  /** Money that operators take out under way. */
  readonly debits: readonly { readonly buyer: number; readonly atMs: number; readonly micros: number }[];
};

export type HistoryPlan = Plan & { readonly history: History };

const BUYERS = 3;
const CALLERS = 6;
/** The load begins at least this long before the first fault, so that wallets are loaded. */
const FIRST_MS = 250;
const LAST_MS = 250;

type Track = 'redis' | 'postgres' | 'writer';

/** How often a fault is one of each kind. */
const TRACKS: readonly (readonly [weight: number, track: Track])[] = [
  [10, 'redis'],
  [5, 'postgres'],
  [4, 'writer'],
];

export function makeHistoryPlan(seed: number): HistoryPlan {
  const random = new Random(seed);
  return makePlan(random, seed, drawRedisFault);
}

/** The same with faults of nodes instead of those of one Redis. */
export function makeClusterHistoryPlan(seed: number, groups: number): HistoryPlan {
  const random = new Random(seed);
  const group = random.int(0, groups - 1);
  const cluster: ClusterFault[] = [];
  const plan = makePlan(random, seed, (_, timing) => {
    // Mostly of one master: a history of faults is one of the same data.
    const of = random.chance(0.7) ? group : random.int(0, groups - 1);
    const deed = random.pick([
      { kind: 'file cut', part: random.chance(0.5) ? 0 : random.next() },
      { kind: 'file cut', part: 0 },
      { kind: 'stale replica promoted' },
      { kind: 'master killed', isReplaced: true },
      { kind: 'flushed' },
      { kind: 'there and back' },
    ] as const);
    const fault: ClusterFault = { ...timing, ...deed, group: of, to: of };
    cluster.push(fault);
    return fault;
  });
  return { ...plan, cluster };
}

function makePlan(
  random: Random,
  seed: number,
  drawRedis: (random: Random, timing: Timing) => RedisFault | ClusterFault,
): HistoryPlan {
  const tracks = drawTracks(random);
  const stores = tracks
    .filter((track) => track !== 'writer')
    .map((track, i): StoreFault => {
      const timing = { atMs: i === 0 ? random.int(FIRST_MS, 700) : random.int(0, 500), forMs: random.int(30, 600) };
      return track === 'redis' ? drawRedis(random, timing) : drawPostgresFault(random, timing);
    });
  return withLoad(random, seed, stores, tracks);
}

/** Two or three, at least one of them of a store, and two of stores in most histories. */
function drawTracks(random: Random): Track[] {
  const count = random.int(2, 3);
  const tracks = Array.from({ length: count }, (_, i) => {
    const track = weighted(random, TRACKS);
    return i === 0 && track === 'writer' ? 'redis' : track;
  });
  // Each exchange of a data folder takes half a second.
  return tracks.filter((track, i) => track !== 'postgres' || tracks.slice(0, i).filter((t) => t === track).length < 2);
}

function drawRedisFault(random: Random, timing: Timing): RedisFault {
  const kind = weighted(random, [
    [5, 'file cut'],
    [4, 'replica promoted'],
    [3, 'old master back'],
    [3, 'a, b, a'],
    [2, 'flushall'],
  ] as const);
  switch (kind) {
    case 'file cut':
      return { ...timing, kind, part: random.chance(0.5) ? 0 : random.next() };
    case 'replica promoted':
      return { ...timing, kind, isAlive: random.chance(0.5) };
    case 'old master back':
      return { ...timing, kind, backMs: random.int(50, 500) };
    default:
      return { ...timing, kind };
  }
}

function drawPostgresFault(random: Random, timing: Timing): PostgresFault {
  const kind = weighted(random, [
    [4, 'rewound'],
    [3, 'standby promoted'],
    [2, 'primary deposed'],
    [2, 'waits cancelled'],
  ] as const);
  return { ...timing, kind, olderMs: random.int(100, 700), end: random.pick(['right one back', 'older one accepted']) };
}

function withLoad(random: Random, seed: number, stores: readonly StoreFault[], tracks: readonly Track[]): HistoryPlan {
  const loadMs = LAST_MS + Math.max(lengthOf(stores), 600);
  const hasTwoWriters = random.chance(0.5);
  const writers = tracks
    .filter((track) => track === 'writer')
    .map(
      (): WriterFault => ({
        kind: random.chance(0.7) ? 'suspended' : 'killed',
        which: hasTwoWriters && random.chance(0.5) ? 1 : 0,
        atMs: random.int(50, loadMs),
        forMs: random.int(50, 1_500),
      }),
    )
    // One after the other, because a suspended writer cannot be killed by its own fault.
    .filter(({ which }, i, all) => all.findIndex((other) => other.which === which) === i);
  const moves = (most: number): { buyer: number; atMs: number; micros: number }[] =>
    Array.from({ length: random.int(0, 2) }, () => ({
      buyer: random.int(0, BUYERS - 1),
      atMs: random.int(0, loadMs),
      micros: random.int(1, most),
    }));
  return {
    seed,
    loadMs,
    creditsMicros: Array.from({ length: BUYERS }, () => random.int(60, 700) * 1_000),
    trees: drawTrees(seed, BUYERS),
    changes: [],
    refunds: drawRefunds(seed, loadMs),
    laterCredits: moves(50_000),
    callers: Array.from({ length: CALLERS }, (_, i) => ({ buyer: i % BUYERS, seed: random.int(0, 2 ** 32 - 1) })),
    faults: random.chance(0.3) ? [drawOther(random, loadMs)] : [],
    cluster: null,
    history: { stores, writers, clocks: [], hasTwoWriters, debits: moves(20_000) },
  };
}

/**
 * The same history, with clocks that jump ahead: mostly all of them, as on one machine. Clocks of cluster nodes never jump: nodes decide
 * by them who has failed and who may be elected, so after a jump a group has no master for long.
 */
export function withClocks(plan: HistoryPlan): HistoryPlan {
  const random = new Random(plan.seed ^ 0x5eed);
  const all = plan.cluster === null ? CLOCKED : CLOCKED.filter((each) => each !== 'redis');
  const whose = random.chance(0.5) ? all : [random.pick(all)];
  const clock = { whose, atMs: random.int(0, plan.loadMs), forMs: random.int(50, 1_500) };
  return { ...plan, history: { ...plan.history, clocks: [clock] } };
}

const lengthOf = (faults: readonly Timing[]): number =>
  faults.reduce(
    (sum, fault) => sum + fault.atMs + fault.forMs + ('olderMs' in fault ? (fault.olderMs as number) : 0),
    0,
  );

/** What happens besides to what is no store. */
function drawOther(random: Random, loadMs: number): Fault {
  const deed = random.pick([
    { kind: 'kill', who: 'worker' },
    { kind: 'stop', who: 'worker' },
    { kind: 'kill', who: 'service' },
    { kind: 'reset', link: 'writer-postgres' },
    { kind: 'reset', link: 'gateway-postgres' },
    { kind: 'reset', link: 'caller-gateway' },
  ] as const);
  return { ...deed, atMs: random.int(20, loadMs), forMs: random.int(30, 500), draw: random.next() };
}

function weighted<T>(random: Random, from: readonly (readonly [weight: number, what: T])[]): T {
  let left = random.next() * from.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, what] of from) {
    left -= weight;
    if (left < 0) return what;
  }
  throw new Error('the weights do not add up');
}

/** Describes the faults of a history in words, for the report of a failure. */
export function describeHistory(plan: HistoryPlan): string {
  const { stores, writers, clocks, hasTwoWriters, debits } = plan.history;
  const line = (what: string, { atMs, forMs, ...fault }: Timing): string =>
    `  ${atMs} ms: ${what} ${JSON.stringify(fault)}, for ${forMs} ms`;
  return [
    describePlan({ ...plan, cluster: null }),
    ...stores.map((fault, i) => line(i === 0 ? 'store' : 'after the last, store', fault)),
    ...writers.map((fault) => line('writer', fault)),
    ...clocks.map((fault) => line('clocks ahead', fault)),
    `  ${hasTwoWriters ? 'two writers' : 'one writer'}, ${debits.length} debits`,
  ].join('\n');
}
