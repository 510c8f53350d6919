// @ts-check
import { setTimeout as sleep } from 'node:timers/promises';
import { watchMachine } from '../measure/machine-share.mjs';
import { cpuSecondsOf, rssBytesOf } from '../measure/proc.mjs';
import { found } from '../report/bars.mjs';
import { preparePipeline } from '../stage/pipeline.mjs';

export const question = 'How fast does one writer bring usage events into Postgres, with a million of them waiting?';

/** `seconds` is not used: storing takes its time, but `maxSeconds` at most. */
export const defaults = { connections: [1], seconds: 4, rounds: 1 };

const defaultEvents = 1_000_000;
const maxSeconds = 300;

/** @type {import('../report/bars.mjs').Promised} */
const bar = {
  what: 'usage events into Postgres, one writer',
  unit: 'events/s',
  is: 'at least',
  bar: 50_000,
  stretch: 100_000,
};
export const bars = [bar];

// For the estimate: making the events and storing them runs at about 50 000 a second each, or faster.
const estimatedEventsPerSecond = 25_000;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ events }) => (events ?? defaultEvents) / estimatedEventsPerSecond;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'eventsPerSecond', title: 'events/s', digits: 0 },
  { key: 'writerMicros', title: 'writer µs/event', digits: 1 },
  { key: 'postgresMicros', title: 'Postgres µs/event', digits: 1 },
  { key: 'redisMicros', title: 'Redis µs/event', digits: 1 },
  { key: 'bytesPerEvent', title: 'Redis bytes/event', digits: 0 },
  { key: 'rssMiB', title: 'writer RSS MiB', digits: 0 },
];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const events = bench.options.events ?? defaultEvents;
  const pipeline = await preparePipeline(bench.stage, events, bench.progress);
  const parts = { postgres: pipeline.postgres, redis: pipeline.redis };
  const before = { postgres: cpuSecondsOf([parts.postgres]), redis: cpuSecondsOf(parts.redis) };
  const machine = watchMachine(bench.stage, bench.processors);
  const writer = await pipeline.startWriter();
  // The clock starts when the first event has been stored, so that the start of the process is not measured.
  const first = await waitFor(pipeline.backlog, (left) => left < events);
  const startedAt = performance.now();
  const left = await waitFor(
    pipeline.backlog,
    (now) => now === 0,
    (now) => bench.progress(`${now} events left`),
  );
  const seconds = (performance.now() - startedAt) / 1000;
  const shares = machine.stop();
  const stored = await pipeline.storedCalls();
  const perEvent = (/** @type {number} */ cpuSeconds) => (cpuSeconds * 1e6) / events;
  const values = {
    eventsPerSecond: (first - left) / seconds,
    writerMicros: perEvent(cpuSecondsOf([writer])),
    postgresMicros: perEvent(cpuSecondsOf([parts.postgres]) - before.postgres),
    redisMicros: perEvent(cpuSecondsOf(parts.redis) - before.redis),
    bytesPerEvent: pipeline.bytesPerEvent,
    rssMiB: rssBytesOf([writer]) / 2 ** 20,
  };
  const faults = stored === events ? [] : [`${stored} calls are stored instead of ${events}`];
  const label = events % 1_000_000 === 0 ? `${events / 1_000_000} million events` : `${events} events`;
  const isValid = faults.length === 0;
  return {
    columns,
    rows: [{ label, peer: 'tollgate', values, ranges: {}, faults }],
    bars: [found(bar, label, [values.eventsPerSecond], isValid)],
    samples: [{ ...values, ...shares, seconds, stored }],
    notes: [],
  };
}

/**
 * @param {() => Promise<number>} backlog
 * @param {(left: number) => boolean} isDone
 * @param {(left: number) => void} [onLook]
 */
async function waitFor(backlog, isDone, onLook = () => {}) {
  const deadline = performance.now() + maxSeconds * 1000;
  for (;;) {
    const left = await backlog();
    onLook(left);
    if (isDone(left) || performance.now() > deadline) return left;
    await sleep(50);
  }
}
