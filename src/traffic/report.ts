import type { ProcessLoad } from './process-load.ts';

/** Calls since the process started, and those that are open. */
export type CallCounts = {
  readonly admitted: number;
  readonly completed: number;
  readonly open: number;
  /** By reason. */
  readonly refunded: Readonly<Record<string, number>>;
  /** By error code. */
  readonly refused: Readonly<Record<string, number>>;
};

/** The calls that ended in the last seconds. */
export type RecentCalls = {
  readonly seconds: number;
  /** Their latencies: pairs of a bucket (ledger/rollups/latency-buckets.ts) and its calls, without empty buckets. */
  readonly buckets: readonly (readonly [bucket: number, calls: number])[];
};

/** Identifies the process. */
export type ProcessName = {
  /** New at each start. For a gateway, the name of its leases and holds. */
  readonly instance: string;
  readonly role: 'gateway' | 'writer';
  /** For a gateway: its number among those of its port, from 1. */
  readonly worker: number | null;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  readonly startedAtMs: number;
};

/** What one process reports about itself while somebody is watching. */
export type Report = ProcessName & {
  readonly load: ProcessLoad;
  /** Gateways only. */
  readonly calls: CallCounts | null;
  /** Null in the first second. */
  readonly recent: RecentCalls | null;
  /** Writers only: the shards whose usage it stores. */
  readonly shards: number | null;
};

/** The first field of a report in Redis. Raised when a field changes its meaning: reports of other versions are ignored. */
const FORMAT = 1;

export const encodeReport = (report: Report): string => JSON.stringify({ format: FORMAT, ...report });

/** Null for a text that this version does not understand. */
export function decodeReport(text: string): Report | null {
  try {
    const { format, ...report } = JSON.parse(text) as Report & { format: number };
    return format === FORMAT ? report : null;
  } catch {
    return null;
  }
}
