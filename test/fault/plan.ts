// The plan of a seed: who calls what, and what breaks when. Times count from the start of the load. The same seed
// gives the same plan, but the machine decides how the processes interleave, so a failure may need a few runs of its seed.

import { describeChange, drawChanges, type PlannedChange } from './changes.ts';
import { type ClusterFault, describeClusterFault } from './cluster/plan.ts';
import type { LinkMode } from './fault-proxy.ts';
import { Random } from './random.ts';
import { describeRefund, drawRefunds, type PlannedRefund } from './refunds.ts';
import { describeTrees, drawTrees, type PlannedTree } from './trees.ts';

export const LINKS = [
  'gateway-redis',
  'gateway-postgres',
  'gateway-service',
  'writer-redis',
  'writer-postgres',
  'caller-gateway',
] as const;
export type LinkName = (typeof LINKS)[number];

/** `gateway` means the supervisor and all its workers. */
type ProcessName = 'worker' | 'gateway' | 'writer' | 'redis' | 'postgres' | 'service';

type Deed =
  /** SIGKILL, and a new start when the fault ends. */
  | { readonly kind: 'kill'; readonly who: ProcessName }
  /** SIGSTOP, and SIGCONT when the fault ends. */
  | { readonly kind: 'stop'; readonly who: Exclude<ProcessName, 'gateway'> }
  /** Like `stop`, but the worker's lease runs out meanwhile, so its open calls are swept while it sleeps. */
  | { readonly kind: 'oversleep'; readonly who: 'worker' }
  | { readonly kind: 'link'; readonly link: LinkName; readonly mode: LinkMode }
  /** All connections of the link are cut once. */
  | { readonly kind: 'reset'; readonly link: LinkName };

export type Fault = Deed & {
  readonly atMs: number;
  readonly forMs: number;
  /** From 0 to below 1: chooses one of the workers. */
  readonly draw: number;
};

export type Plan = {
  readonly seed: number;
  readonly loadMs: number;
  /** First credit of each buyer, in micro-USD. Some run out of money. */
  readonly creditsMicros: readonly number[];
  /** The keys below that of each buyer. Their callers use them, too. */
  readonly trees: readonly PlannedTree[];
  /** What is changed of them under way. Only where no store loses it. */
  readonly changes: readonly PlannedChange[];
  /** Calls that are given back under way. */
  readonly refunds: readonly PlannedRefund[];
  /** Credits that come in under way. */
  readonly laterCredits: readonly { readonly buyer: number; readonly atMs: number; readonly micros: number }[];
  /** For each caller: the buyer whose key it uses, and the seed of its requests. */
  readonly callers: readonly { readonly buyer: number; readonly seed: number }[];
  readonly faults: readonly Fault[];
  /** Faults of the nodes of a cluster. Null: there is one Redis. */
  readonly cluster: readonly ClusterFault[] | null;
};

const BUYERS = 3;
const CALLERS = 6;

/** Kinds of fault, each drawn in proportion to its weight. */
const DEEDS: readonly (readonly [weight: number, make: (random: Random) => Deed])[] = [
  [5, () => ({ kind: 'kill', who: 'worker' })],
  // Drawn rarely, because starting everything again takes longest.
  [1, () => ({ kind: 'kill', who: 'gateway' })],
  [4, () => ({ kind: 'kill', who: 'writer' })],
  [4, () => ({ kind: 'kill', who: 'redis' })],
  [2, () => ({ kind: 'kill', who: 'postgres' })],
  [2, () => ({ kind: 'kill', who: 'service' })],
  [6, (random) => ({ kind: 'stop', who: random.pick(['worker', 'writer', 'redis', 'postgres', 'service'] as const) })],
  [3, () => ({ kind: 'oversleep', who: 'worker' })],
  [6, (random) => ({ kind: 'reset', link: random.pick(LINKS) })],
  // Drawn often, because replies of Redis, where the wallets are, are lost.
  [8, (random) => ({ kind: 'link', link: 'gateway-redis', mode: linkMode(random) })],
  // A cancellation overtakes the admission whose reply was lost.
  [4, () => ({ kind: 'link', link: 'gateway-redis', mode: { kind: 'strand' } })],
  [12, (random) => ({ kind: 'link', link: random.pick(LINKS), mode: linkMode(random) })],
];

export function makePlan(seed: number): Plan {
  const random = new Random(seed);
  const loadMs = random.int(400, 900);
  const trees = drawTrees(seed, BUYERS);
  return {
    seed,
    loadMs,
    creditsMicros: Array.from({ length: BUYERS }, () => random.int(20, 400) * 1_000),
    trees,
    changes: drawChanges(seed, trees, loadMs),
    refunds: drawRefunds(seed, loadMs),
    laterCredits: Array.from({ length: random.int(0, 2) }, () => ({
      buyer: random.int(0, BUYERS - 1),
      atMs: random.int(0, loadMs),
      micros: random.int(1, 50_000),
    })),
    callers: Array.from({ length: CALLERS }, (_, i) => ({ buyer: i % BUYERS, seed: random.int(0, 2 ** 32 - 1) })),
    faults: makeFaults(random, loadMs),
    cluster: null,
  };
}

function makeFaults(random: Random, loadMs: number): Fault[] {
  const faults: Fault[] = [];
  const count = random.int(1, 4);
  while (faults.length < count) {
    const deed = drawDeed(random);
    // A gateway gives up a silent Redis connection after three command timeouts.
    const longest = deed.kind === 'link' && deed.mode.kind === 'strand' ? 1_500 : 700;
    const [atMs, forMs, draw] = [random.int(20, loadMs), random.int(30, longest), random.next()];
    const fault = { ...deed, atMs, forMs, draw };
    if (faults.every((other) => canBeTogether(fault, other))) faults.push(fault);
  }
  return faults.sort((a, b) => a.atMs - b.atMs);
}

function drawDeed(random: Random): Deed {
  const total = DEEDS.reduce((sum, [weight]) => sum + weight, 0);
  let left = random.next() * total;
  for (const [weight, make] of DEEDS) {
    left -= weight;
    if (left < 0) return make(random);
  }
  throw new Error('the weights do not add up');
}

const subject = (deed: Deed): string => ('link' in deed ? deed.link : deed.who);
const isWorker = (deed: Deed): boolean => ['worker', 'gateway'].includes(subject(deed));

/** Each part has one fault at a time, and setting a lease back needs a Redis without faults. */
function canBeTogether(a: Deed, b: Deed): boolean {
  if (subject(a) === subject(b) || (isWorker(a) && isWorker(b))) return false;
  const kinds = [a, b];
  return !(kinds.some(({ kind }) => kind === 'oversleep') && kinds.some((deed) => subject(deed) === 'redis'));
}

function linkMode(random: Random): LinkMode {
  const what = random.pick(['requests', 'replies', 'both'] as const);
  return random.pick<LinkMode>([
    { kind: 'refuse' },
    { kind: 'buffer', what },
    { kind: 'buffer', what },
    { kind: 'delay', ms: random.int(5, 250) },
    { kind: 'cut reply', part: random.next() },
  ]);
}

/** Describes a plan in words, for the report of a failure. */
export function describePlan({ seed, loadMs, trees, changes, refunds, faults, cluster }: Plan): string {
  const lines = faults.map((fault) => {
    const mode = fault.kind === 'link' ? ` ${JSON.stringify(fault.mode)}` : '';
    return `  ${fault.atMs} ms: ${fault.kind} ${subject(fault)}${mode}, for ${fault.forMs} ms`;
  });
  const keys = [...describeTrees(trees), ...changes.map(describeChange), ...refunds.map(describeRefund)];
  const nodes = (cluster ?? []).map(describeClusterFault);
  return [`seed ${seed}, ${loadMs} ms of load`, ...keys, ...nodes, ...lines].join('\n');
}

/** Whether holds of a gateway may have been swept: it died, or slept for longer than its lease. */
export const losesGateway = ({ faults }: Plan): boolean =>
  faults.some((fault) => (fault.kind === 'kill' && isWorker(fault)) || fault.kind === 'oversleep');
