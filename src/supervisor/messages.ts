import type { MetricFamily } from '../observability/metrics.ts';

/** What the supervisor and the processes it started tell each other over their IPC channels. */
export type ToChild =
  /** Drain and end. `replaced`: another one serves the port, so callers can be sent there one by one. */
  | { readonly type: 'stop'; readonly replaced: boolean }
  /** Send your metrics, with this number. */
  | { readonly type: 'metrics'; readonly request: number };

export type FromChild =
  | { readonly type: 'ready' }
  | { readonly type: 'metrics'; readonly request: number; readonly families: readonly MetricFamily[] };

/** The argument that tells a process it is supervised: `main.js gateway supervised 2`, `main.js writer supervised`. */
export const SUPERVISED = 'supervised';
