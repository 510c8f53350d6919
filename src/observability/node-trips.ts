import { performance } from 'node:perf_hooks';
import { LatencyHistogram } from './latency-histogram.ts';

/** How long a node that has left is still shown: Prometheus may not have read its last numbers yet. */
const SHOWN_MS = 300_000;
/** Maximum nodes remembered. If nodes are replaced again and again, each time at another address, the oldest are forgotten. */
const MAX_NODES = 256;

/** The trips to one Redis, as its connection counts them. */
export class NodeTrips {
  /** Durations of the trips that were answered. */
  readonly latency = new LatencyHistogram();
  refusals = 0;
  losses = 0;

  answered(us: number): void {
    this.latency.count(us);
  }

  refused(): void {
    this.refusals++;
  }

  lost(): void {
    this.losses++;
  }
}

/** The trips of a process to each Redis, by its address. Tested by test/observability/node-trips.test.ts. */
export class TripsByNode {
  readonly #nodes = new Map<string, { readonly trips: NodeTrips; usedAt: number }>();

  /** A node that comes back continues its former counts. */
  of(address: string): NodeTrips {
    const known = this.#nodes.get(address);
    if (known !== undefined) return known.trips;
    if (this.#nodes.size === MAX_NODES) {
      const [oldest] = Array.from(this.#nodes).sort(([, a], [, b]) => a.usedAt - b.usedAt);
      this.#nodes.delete((oldest as [string, unknown])[0]);
    }
    const trips = new NodeTrips();
    this.#nodes.set(address, { trips, usedAt: performance.now() });
    return trips;
  }

  /** @param inUse the nodes in use now. These are shown, and those that were in use until recently */
  read<T>(inUse: Iterable<string>, pick: (trips: NodeTrips) => T): ReadonlyMap<string, T> {
    const now = performance.now();
    for (const address of inUse) {
      const node = this.#nodes.get(address);
      if (node !== undefined) node.usedAt = now;
    }
    const shown = Array.from(this.#nodes).filter(([, { usedAt }]) => now - usedAt < SHOWN_MS);
    return new Map(shown.map(([address, { trips }]) => [address, pick(trips)]));
  }
}
