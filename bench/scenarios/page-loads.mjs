// @ts-check
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { spawnOwned, stopProcess } from '../../scripts/local/processes.mjs';
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, median, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question =
  'What do calls at half load notice of people who open 50 pages of the catalog a second, from a gateway with 1 000 services?';

export const defaults = { connections: [256], seconds: 6, rounds: 4 };

const loadsPerSecond = 50;
const services = 1_000;
const [without, beside] = ['no pages', `${loadsPerSecond} page loads/s`];

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'p99 of calls at half load, with page loads vs without',
    unit: '',
    is: 'at most',
    of: { peer: 'tollgate', variant: beside },
    against: { peer: 'tollgate', variant: without },
    metric: ({ latency }) => latency.p99,
    bar: 1.25,
    stretch: 1.05,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds({ ...options, rounds: 1 }, 2 * options.rounds + 1);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options } = bench;
  const once = { ...bench, options: { ...options, rounds: 1 } };
  const main = fundedKeys((2 * options.rounds + 1) * loadSeconds(once.options, 1));
  const [peer] = await bench.peers(['tollgate'], { keySets: { main }, services });
  if (peer === undefined) throw new Error('the peer tollgate has to take part');
  const { connections } = options;
  const closed = await alternate(once, { contestants: [{ peer, load: {}, variant: 'saturation' }], connections });
  const ratePerSecond = Math.round(median(closed.map(({ callsPerSecond }) => callsPerSecond)) / 2);
  const samples = [...closed];
  const visits = { loads: 0, bytes: 0, failed: 0, seconds: 0, lastError: '' };
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const variant of [without, beside]) {
      const visitors = variant === beside ? startVisitors(stage, peer.port) : null;
      const measured = await alternate(once, {
        contestants: [{ peer, load: { ratePerSecond }, variant }],
        connections,
      });
      samples.push(...measured.map((sample) => ({ ...sample, round })));
      if (visitors !== null) add(visits, await visitors.end());
    }
  }
  if (visits.loads === 0 || visits.failed > visits.loads / 100) {
    throw new Error(`${visits.failed} of ${visits.loads + visits.failed} page loads failed: ${visits.lastError}`);
  }
  const notes = [
    `rate: ${ratePerSecond} calls/s, half of what the gateway can do; each call is timed from the moment at which it was due`,
    `${(visits.loads / visits.seconds).toFixed(1)} page loads/s, ${(visits.bytes / visits.loads / 1024).toFixed(0)} KiB each ` +
      `with all files, ${visits.failed} failed. The visitors are a process on the same processors as everything else`,
  ];
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}

/** @param {import('../stage/stage.mjs').Stage} stage @param {number} port */
function startVisitors(stage, port) {
  const resultFile = stage.file(`page-visitors-${Date.now()}.json`);
  const child = spawnOwned({
    runDir: stage.scratch.runDir,
    name: 'page-visitors',
    command: process.execPath,
    args: [
      fileURLToPath(new URL('../load/page-visitors.mjs', import.meta.url)),
      ...[String(port), String(loadsPerSecond), resultFile],
    ],
    logFile: stage.file('page-visitors.log'),
  });
  const startedAt = performance.now();
  return {
    end: async () => {
      await stopProcess(child.record);
      const seconds = (performance.now() - startedAt) / 1000;
      return { ...JSON.parse(readFileSync(resultFile, 'utf8')), seconds };
    },
  };
}

/** @typedef {{ loads: number, bytes: number, failed: number, seconds: number, lastError: string }} Visits */

/** @param {Visits} sum @param {Visits} more */
function add(sum, { loads, bytes, failed, seconds, lastError }) {
  sum.loads += loads;
  sum.bytes += bytes;
  sum.failed += failed;
  sum.seconds += seconds;
  sum.lastError = lastError;
}
