import type { Sample } from '../../bench/measure/sample.mjs';
import type { Bar } from '../../bench/report/bars.mjs';
import type { Run } from '../../bench/report/save.mjs';

export const noErrors = { connect: 0, socket: 0, timeout: 0, status: 0 };

export const sample = (peer: string, round: number, proxyMicros: number, errors = noErrors): Sample => ({
  peer,
  round,
  errors,
  driver: 'wrk',
  variant: '',
  tolerated: 0,
  connections: 64,
  seconds: 4,
  calls: 40_000,
  callsPerSecond: 10_000,
  latency: { p50: 1000, p90: 2000, p99: 3000, p999: 4000, max: 5000 },
  bytes: 1,
  cpuMicros: { proxy: proxyMicros, redis: null, replicas: null, writer: null, postgres: null },
  tripsPerCall: null,
  rssBytes: 2 ** 20,
  rssDuringBytes: 2 ** 20,
  settledSeconds: 0,
  foreignShare: 0,
  stolenShare: 0,
});

export const ratioBar: Bar = {
  what: 'CPU of a to b',
  unit: '',
  is: 'at most',
  of: { peer: 'a' },
  against: { peer: 'b' },
  metric: ({ cpuMicros }: Sample) => cpuMicros.proxy,
  bar: 0.6,
  stretch: 0.45,
};

export const titleOf = (peer: string): string => peer.toUpperCase();

const options = {
  driver: 'wrk',
  seconds: 4,
  rounds: 3,
  connections: [64],
  workers: 1,
  events: null,
} as const;

/** A run with these results. */
export const runOf = (results: readonly Pick<Run['results'][number], 'name' | 'bars' | 'findings'>[]): Run => ({
  date: new Date('2026-11-21T16:00:00Z'),
  command: 'npm run bench',
  machine: {
    processor: 'R&D <chip> "x"',
    processors: 2,
    memoryGiB: 4,
    kernel: '6.1',
    node: 'v20',
    programs: { wrk: null },
    commit: 'abc',
    isDirty: false,
    loadAverage: 0,
  },
  results: results.map((one) => ({
    ...one,
    question: 'why?',
    options: { ...options, connections: [64] },
    loadAverage: 0,
    seconds: 1,
    failure: one.findings === null ? 'it broke' : null,
  })),
});
