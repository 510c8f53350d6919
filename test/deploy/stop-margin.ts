/**
 * How much longer than DRAIN_SECONDS a process may take to stop before it is killed: a supervisor gives its gateways 10 s more, and
 * its writer 10 s after them (docs/operating.md, 'Stopping').
 */
export const STOP_MARGIN_SECONDS = 20;
