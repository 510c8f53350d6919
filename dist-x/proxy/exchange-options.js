import { noLatencies } from '../ledger/rollups/latency-buckets.js';
import { LatencyHistogram } from '../observability/latency-histogram.js';
/** The counters of a gateway that has had no calls. */
export const newCounters = () => ({
    admitted: 0,
    open: 0,
    completed: 0,
    refunded: new Map(),
    refused: new Map(),
    latencies: noLatencies(),
    timings: { admission: new LatencyHistogram(), service: new LatencyHistogram(), total: new LatencyHistogram() },
});
//# sourceMappingURL=exchange-options.js.map