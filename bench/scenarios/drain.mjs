// @ts-check
import { setTimeout as sleep } from 'node:timers/promises';
import { watchMachine } from '../measure/machine-share.mjs';
import { cpuSecondsOf } from '../measure/proc.mjs';
import { median } from '../report/summary.mjs';
import { preparePipeline } from '../stage/pipeline.mjs';

export const question =
  'How much faster do 2 and 4 writers bring waiting usage events into Postgres than one, and what limits them?';

/** `seconds` is not used: storing takes its time, but `maxSeconds` at most. */
export const defaults = { connections: [1], seconds: 4, rounds: 3 };

const writerCounts = [1, 2, 4];
const defaultEvents = 200_000;
const maxSeconds = 120;
const shareSeconds = 20;

/** @type {import('../report/bars.mjs').Promised[]} */
export const bars = [];

// Making the events, starting the writers and storing the events.
const estimatedEventsPerSecond = 20_000;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ events, rounds }) =>
  rounds * writerCounts.length * ((events ?? defaultEvents) / estimatedEventsPerSecond + 5);

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'eventsPerSecond', title: 'events/s', digits: 0, hasRange: true },
  { key: 'writerMicros', title: 'writers µs/event', digits: 1 },
  { key: 'postgresMicros', title: 'Postgres µs/event', digits: 1 },
  { key: 'redisMicros', title: 'Redis µs/event', digits: 1 },
  { key: 'writerCores', title: 'cores of the writers', digits: 2 },
  { key: 'postgresCores', title: 'of Postgres', digits: 2 },
  { key: 'redisCores', title: 'of Redis', digits: 2 },
];

/** @param {() => Promise<boolean>} isSo @param {number} seconds @param {string} what */
async function until(isSo, seconds, what) {
  const deadline = performance.now() + seconds * 1000;
  while (!(await isSo())) {
    if (performance.now() > deadline) throw new Error(`${what}: not within ${seconds} s`);
    await sleep(20);
  }
}

/** @param {import('../run.mjs').Bench} bench @param {number} count @param {number} events @param {string} name */
async function drainBy({ stage, processors, progress }, count, events, name) {
  const pipeline = await preparePipeline(stage, events, progress, { name, isHidden: true });
  const writers = await Promise.all(Array.from({ length: count }, (_, index) => pipeline.startWriter(index + 1)));
  await until(
    async () => (await pipeline.workingWriters()) === count,
    shareSeconds,
    `${count} writers share the shards`,
  );
  const cpu = () => [writers, [pipeline.postgres], pipeline.redis].map((part) => cpuSecondsOf(part));
  const before = cpu();
  const machine = watchMachine(stage, processors);
  await pipeline.show();
  const startedAt = performance.now();
  await until(async () => (await pipeline.backlog()) === 0, maxSeconds, `${events} events are stored`);
  const seconds = (performance.now() - startedAt) / 1000;
  const shares = machine.stop();
  const used = cpu().map((after, index) => after - (before[index] ?? 0));
  const stored = await pipeline.storedCalls();
  for (const { pid } of writers) process.kill(pid, 'SIGTERM');
  const perEvent = used.map((cpuSeconds) => (cpuSeconds * 1e6) / events);
  const cores = used.map((cpuSeconds) => cpuSeconds / seconds);
  return {
    count,
    seconds,
    stored,
    ...shares,
    values: {
      eventsPerSecond: events / seconds,
      writerMicros: perEvent[0] ?? 0,
      postgresMicros: perEvent[1] ?? 0,
      redisMicros: perEvent[2] ?? 0,
      writerCores: cores[0] ?? 0,
      postgresCores: cores[1] ?? 0,
      redisCores: cores[2] ?? 0,
    },
    faults: stored === events ? [] : [`${stored} calls are stored instead of ${events}`],
  };
}

/** @param {number[]} values @returns {[number, number]} */
const range = (values) => [Math.min(...values), Math.max(...values)];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const events = bench.options.events ?? defaultEvents;
  /** @type {Awaited<ReturnType<typeof drainBy>>[]} */
  const samples = [];
  for (let round = 1; round <= bench.options.rounds; round += 1) {
    for (const count of writerCounts) samples.push(await drainBy(bench, count, events, `drain-${count}-${round}`));
  }
  const rows = writerCounts.map((count) => {
    const ofCount = samples.filter((sample) => sample.count === count);
    const all = (/** @type {string} */ key) =>
      ofCount.map(({ values }) => Number(Object.entries(values).find(([name]) => name === key)?.[1]));
    return {
      label: `${count} writer${count === 1 ? '' : 's'}`,
      peer: 'tollgate',
      values: Object.fromEntries(columns.map(({ key }) => [key, median(all(key))])),
      ranges: Object.fromEntries(columns.map(({ key }) => [key, range(all(key))])),
      faults: ofCount.flatMap(({ faults }) => faults),
    };
  });
  const notes = [`${events} events, in the streams before the clock starts; ${bench.processors} processors in all`];
  return { columns, rows, bars: [], samples, notes };
}
