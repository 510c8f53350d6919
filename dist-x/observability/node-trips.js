import { performance } from 'node:perf_hooks';
import { LatencyHistogram } from './latency-histogram.js';
/** How long a node that has left is still shown: Prometheus may not have read its last numbers yet. */
const SHOWN_MS = 300_000;
/** Nodes that are remembered. Nodes that are replaced again and again, each time at another address, push out the oldest. */
const MAX_NODES = 256;
/** The trips to one Redis, as its connection counts them. */
export class NodeTrips {
    /** Of the trips that were answered. */
    latency = new LatencyHistogram();
    refusals = 0;
    losses = 0;
    answered(us) {
        this.latency.count(us);
    }
    refused() {
        this.refusals++;
    }
    lost() {
        this.losses++;
    }
}
/** The trips of a process to each Redis, by its address. Tested by test/observability/node-trips.test.ts. */
export class TripsByNode {
    #nodes = new Map();
    /** A node that comes back goes on where it left off. */
    of(address) {
        const known = this.#nodes.get(address);
        if (known !== undefined)
            return known.trips;
        if (this.#nodes.size === MAX_NODES) {
            const [oldest] = Array.from(this.#nodes).sort(([, a], [, b]) => a.usedAt - b.usedAt);
            this.#nodes.delete(oldest[0]);
        }
        const trips = new NodeTrips();
        this.#nodes.set(address, { trips, usedAt: performance.now() });
        return trips;
    }
    /** @param inUse  the nodes that are used now: these are shown, and those that were not long ago */
    read(inUse, pick) {
        const now = performance.now();
        for (const address of inUse) {
            const node = this.#nodes.get(address);
            if (node !== undefined)
                node.usedAt = now;
        }
        const shown = Array.from(this.#nodes).filter(([, { usedAt }]) => now - usedAt < SHOWN_MS);
        return new Map(shown.map(([address, { trips }]) => [address, pick(trips)]));
    }
}
//# sourceMappingURL=node-trips.js.map