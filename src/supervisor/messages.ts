import type { MetricFamily } from '../observability/metrics.ts';

/** The messages that the supervisor sends over IPC to the processes it started. They send back those in `FromChild`. */
export type ToChild =
  /** Drain and end. If `replaced`, another process already serves the port, and callers can be sent there one by one. */
  | { readonly type: 'stop'; readonly replaced: boolean }
  /** Send your metrics, and repeat the number of this request. */
  | { readonly type: 'metrics'; readonly request: number };

export type FromChild =
  | { readonly type: 'ready' }
  | { readonly type: 'metrics'; readonly request: number; readonly families: readonly MetricFamily[] };

/** The argument that tells a process it is supervised: `main.js gateway supervised 2`, `main.js writer supervised`. */
export const SUPERVISED = 'supervised';
