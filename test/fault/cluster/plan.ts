// The plan of a schedule on a Redis Cluster. Each has a failover or a partition, and half of them something else besides.

import type { Fault, Plan } from '../plan.ts';
import { Random } from '../random.ts';
import { drawRefunds } from '../refunds.ts';
import { drawTrees } from '../trees.ts';
import { GROUPS } from './nodes.ts';

type ClusterDeed =
  /** SIGKILL of a master. Its replica takes over, and then it comes back; or it comes back at once. */
  | { readonly kind: 'master killed'; readonly isReplaced: boolean }
  /** SIGSTOP of a master, and SIGCONT when its replica has taken over, or earlier. */
  | { readonly kind: 'master stopped'; readonly isReplaced: boolean }
  /** No other node hears the master, and its clients hear it or not, until its replica has taken over. */
  | { readonly kind: 'master cut off'; readonly fromClients: boolean }
  /** The replica gets nothing for a while. Then the master is killed. */
  | { readonly kind: 'stale replica promoted' }
  | { readonly kind: 'failover by hand' }
  /** A shard moves to another master, and back. */
  | { readonly kind: 'slot moved' }
  | { readonly kind: 'replica killed' }
  /** SIGKILL of a master, which comes back at once without the end of its file. Only in histories, like the next two. */
  | { readonly kind: 'file cut'; readonly part: number }
  | { readonly kind: 'flushed' }
  /** Two failovers by hand: the same process is master again. */
  | { readonly kind: 'there and back' };

export type ClusterFault = ClusterDeed & {
  /** Which master, by the number of its slots' range. Buyer number n is of the same group. */
  readonly group: number;
  /** Where a slot goes. */
  readonly to: number;
  readonly atMs: number;
  readonly forMs: number;
};

type Weighted<T> = readonly (readonly [weight: number, make: (random: Random) => T])[];

const FAILOVERS: Weighted<ClusterDeed> = [
  [7, () => ({ kind: 'master killed', isReplaced: true })],
  [4, () => ({ kind: 'master stopped', isReplaced: true })],
  [6, (random) => ({ kind: 'master cut off', fromClients: random.chance(0.5) })],
  [3, () => ({ kind: 'stale replica promoted' })],
  [5, () => ({ kind: 'failover by hand' })],
];

/** What happens in another group meanwhile. Two masters of three must be there for the third to be replaced. */
const BESIDES: Weighted<ClusterDeed> = [
  [1, () => ({ kind: 'master killed', isReplaced: false })],
  [1, () => ({ kind: 'master stopped', isReplaced: false })],
  [4, () => ({ kind: 'slot moved' })],
  [1, () => ({ kind: 'replica killed' })],
  [2, () => ({ kind: 'failover by hand' })],
];

const OTHERS: Weighted<Pick<Fault, 'kind'> & object> = [
  [3, () => ({ kind: 'kill', who: 'worker' })],
  [3, () => ({ kind: 'kill', who: 'writer' })],
  [1, () => ({ kind: 'kill', who: 'gateway' })],
  [1, () => ({ kind: 'kill', who: 'service' })],
  [2, () => ({ kind: 'stop', who: 'postgres' })],
  [1, () => ({ kind: 'kill', who: 'postgres' })],
  [2, () => ({ kind: 'stop', who: 'writer' })],
  [1, () => ({ kind: 'stop', who: 'worker' })],
  [2, () => ({ kind: 'reset', link: 'writer-postgres' })],
  [1, () => ({ kind: 'reset', link: 'caller-gateway' })],
];

/** How long the load goes on before the failover. */
const LONGEST_BEFORE_MS = 900;

export function makeClusterPlan(seed: number): Plan {
  const random = new Random(seed);
  const group = random.int(0, GROUPS - 1);
  const failover: ClusterFault = {
    ...draw(random, FAILOVERS),
    group,
    to: group,
    atMs: random.int(350, LONGEST_BEFORE_MS),
    forMs: random.int(100, 800),
  };
  const cluster = [failover];
  // In another group, because a node has one fault at a time.
  const [another, third] = [(group + 1) % GROUPS, (group + 2) % GROUPS] as const;
  if (random.chance(0.45)) {
    cluster.push({
      ...draw(random, BESIDES),
      group: another,
      to: third,
      atMs: random.int(20, 1_500),
      forMs: random.int(30, 300),
    });
  }
  const faults = random.chance(0.4) ? [makeOther(random)] : [];
  return {
    seed,
    loadMs: failover.atMs + 300,
    // More than in a plan for one Redis, because the load goes on until the failover has ended.
    creditsMicros: Array.from({ length: GROUPS }, () => random.int(100, 900) * 1_000),
    trees: drawTrees(seed, GROUPS),
    changes: [],
    refunds: drawRefunds(seed, failover.atMs + 300),
    laterCredits: Array.from({ length: random.int(0, 2) }, () => ({
      buyer: random.int(0, GROUPS - 1),
      atMs: random.int(0, 2_000),
      micros: random.int(1, 50_000),
    })),
    callers: Array.from({ length: 2 * GROUPS }, (_, i) => ({ buyer: i % GROUPS, seed: random.int(0, 2 ** 32 - 1) })),
    faults,
    cluster: cluster.sort((a, b) => a.atMs - b.atMs),
  };
}

function makeOther(random: Random): Fault {
  return {
    ...draw(random, OTHERS),
    atMs: random.int(50, 2_500),
    forMs: random.int(30, 700),
    draw: random.next(),
  } as Fault;
}

function draw<T>(random: Random, from: Weighted<T>): T {
  let left = random.next() * from.reduce((sum, [weight]) => sum + weight, 0);
  for (const [weight, make] of from) {
    left -= weight;
    if (left < 0) return make(random);
  }
  throw new Error('the weights do not add up');
}

/** Describes the faults of the cluster in words, for the report of a failure. */
export const describeClusterFault = ({ atMs, forMs, group, kind, ...more }: ClusterFault): string =>
  `  ${atMs} ms: ${kind}, group ${group}, for ${forMs} ms ${JSON.stringify(more)}`;

/** Whether the group may have another master afterwards. */
export const mayReplace = ({ kind }: ClusterDeed): boolean => kind !== 'slot moved' && kind !== 'replica killed';
