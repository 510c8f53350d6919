// @ts-check
import { readFileSync } from 'node:fs';
import { drive } from '../load/drive.mjs';
import { medianWithInterval, pairedRatios } from '../measure/paired.mjs';
import { driverOf, jobOf, measure } from '../measure/sample.mjs';
import { faultsOf, median } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question = 'What does the access log (ACCESS_LOG=on) add to a small metered call?';

/** `seconds` is the length of the load. The log is turned on and off every second meanwhile (measure/log-switch.mjs). */
export const defaults = { connections: [64], seconds: 180, rounds: 1 };

const warmUpSeconds = 5;

/** @type {import('../report/bars.mjs').Promised} */
const bar = {
  what: 'CPU a call with the access log vs without, one gateway, second by second; in brackets 95 % for the median',
  unit: '',
  is: 'at most',
  bar: 1.03,
  stretch: null,
};
export const bars = [bar];

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'callsPerSecond', title: 'calls/s', digits: 0 },
  { key: 'micros', title: 'CPU µs/call', digits: 2 },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ seconds, rounds }) => rounds * (warmUpSeconds + seconds);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors } = bench;
  const { connections, seconds, rounds } = options;
  const logSwitchFile = stage.file('log-switch.ndjson');
  const keySets = { main: fundedKeys(rounds * (warmUpSeconds + seconds)) };
  const [peer] = await bench.peers(['tollgate-access-log'], { keySets, logSwitchFile });
  if (peer === undefined) throw new Error('the scenario needs Tollgate');
  const [count = 64] = connections;
  const driver = driverOf({}, options.driver);
  const samples = [];
  /** @type {number[]} */
  const ratios = [];
  /** @type {{ isOn: boolean, value: number, calls: number }[]} */
  const all = [];
  for (let round = 1; round <= rounds; round += 1) {
    bench.progress(`round ${round}/${rounds}`);
    await drive(stage.scratch, driver, jobOf(peer, {}, { connections: count, seconds: warmUpSeconds }));
    const from = Date.now();
    samples.push(await measure(stage, peer, driver, {}, { connections: count, seconds, processors }));
    const blocks = blocksBetween(logSwitchFile, from, from + seconds * 1000);
    ratios.push(...pairedRatios(blocks));
    all.push(...blocks);
  }
  const { median: measured, low, high } = medianWithInterval(ratios);
  const faults = faultsOf(/** @type {any} */ (samples));
  const label = `${count} connections, ${ratios.length} pairs of a second`;
  const rowOf = (/** @type {boolean} */ isOn) => {
    const its = all.filter((block) => block.isOn === isOn);
    const values = {
      callsPerSecond: median(its.map(({ calls }) => calls)),
      micros: median(its.map(({ value }) => value)),
    };
    return { label: isOn ? 'log on' : 'log off', peer: peer.name, values, ranges: {}, faults };
  };
  const result = { ...bar, label, measured, lowest: low, highest: high, isValid: faults.length === 0 };
  const notes = ['the log goes to a file'];
  return { columns, rows: [rowOf(false), rowOf(true)], bars: [result], samples, notes };
}

// Of a load, the driver connects in the first blocks, and the last one may be cut off.
const edgeMs = 2_000;

/** @param {string} file @param {number} fromMs @param {number} toMs */
function blocksBetween(file, fromMs, toMs) {
  return readFileSync(file, 'utf8')
    .trimEnd()
    .split('\n')
    .map((line) => /** @type {import('../measure/log-switch.mjs').Block} */ (JSON.parse(line)))
    .filter(({ endedAtMs, calls }) => endedAtMs > fromMs + edgeMs && endedAtMs < toMs && calls > 0)
    .map(({ isOn, calls, cpuMicros }) => ({ isOn, calls, value: cpuMicros / calls }));
}
