// @ts-check
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

/** @typedef {import('../measure/sample.mjs').Sample} Sample */

export const question =
  'How many calls does the gateway still serve when three times as many come as it can serve, and what do the others get?';

// With 1 024 connections the calls wait in the load generator. With 8 192 they wait in the gateway, and are more than it accepts.
export const defaults = { connections: [1024, 8192], seconds: 5, rounds: 3 };

const excess = 3;
const counted = { expectStatus: 200, tolerateStatus: 503 };
const saturation = 'closed loop';
const full = 'at saturation';
const overload = 'at three times saturation';

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'calls served at three times saturation vs at saturation',
    unit: '',
    is: 'at least',
    of: { peer: 'tollgate', variant: overload },
    against: { peer: 'tollgate', variant: full },
    metric: ({ callsPerSecond }) => callsPerSecond,
    bar: 0.9,
    stretch: 1.0,
  },
];

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'served', title: 'served/s', digits: 0, hasRange: true },
  { key: 'shed', title: 'shed/s', digits: 0 },
  { key: 'p50', title: 'p50 ms', digits: 1 },
  { key: 'p99', title: 'p99 ms', digits: 1 },
  { key: 'errors', title: 'errors', digits: 0 },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds(options, 3);

/**
 * Counts only what was answered while calls still came: a line that is worked off afterwards was not served in time. Calls that
 * could not even be begun are no errors here, because an overload consists of them.
 * @param {Sample} sample
 */
function servedOnly(sample) {
  const inTime = sample.openLoop?.inTime ?? { calls: sample.calls, tolerated: sample.tolerated };
  const calls = inTime.calls - inTime.tolerated;
  return {
    ...sample,
    calls,
    callsPerSecond: calls / sample.seconds,
    tolerated: 0,
    shedPerSecond: inTime.tolerated / sample.seconds,
    errors: { ...sample.errors, timeout: 0 },
  };
}

/** @param {ReturnType<typeof servedOnly>} sample */
const valuesOf = ({ callsPerSecond, shedPerSecond, latency, errors }) => ({
  served: callsPerSecond,
  shed: shedPerSecond,
  p50: latency.p50 / 1000,
  p99: latency.p99 / 1000,
  errors: errors.connect + errors.socket + errors.status,
});

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { options } = bench;
  const main = fundedKeys(2 * loadSeconds(options, options.connections.length));
  const [peer] = await bench.peers(['tollgate'], { keySets: { main } });
  if (peer === undefined)
    throw new Error('this scenario measures only the gateway, so the peer tollgate has to take part');
  const samples = [];
  const rates = [];
  for (const count of options.connections) {
    const connections = [count];
    const closedLoop = { peer, variant: saturation, load: counted };
    const closed = await alternate(bench, { contestants: [closedLoop], connections });
    // The best round: the first call of a key costs more, so the first round is slower than saturation.
    const ratePerSecond = Math.round(Math.max(...closed.map((sample) => servedOnly(sample).callsPerSecond)));
    if (ratePerSecond === 0)
      throw new Error(`${count} connections: no call was served, so there is no rate to multiply`);
    const open = (/** @type {string} */ variant, /** @type {number} */ factor) => ({
      peer,
      variant,
      load: { ...counted, ratePerSecond: ratePerSecond * factor },
    });
    const contestants = [open(full, 1), open(overload, excess)];
    samples.push(...closed, ...(await alternate(bench, { contestants, connections })));
    rates.push(ratePerSecond);
  }
  const served = samples.map(servedOnly);
  const notes = [
    `rates: what a closed loop reached (${rates.join(', ')} calls/s), and ${excess} times that; callers that are told to come ` +
      'back later come back at once; each call is timed from the moment at which it was due',
    'served/s: answers with 200 while calls came; shed/s: answers with 503',
  ];
  return { columns, rows: toRows(served, valuesOf), bars: evaluate(served, bars), samples: served, notes };
}
