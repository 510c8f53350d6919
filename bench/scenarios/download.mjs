// @ts-check
import { estimateTransfers, msPerGib, transferBodies } from './bodies.mjs';

export const question = 'What does it cost to pass on a response of 1 GiB?';

/** `seconds` is the longest time that a transfer may take. */
export const defaults = { connections: [1, 4], seconds: 60, rounds: 3 };

const transferBytes = 2 ** 30;
const peers = /** @type {const} */ (['direct', 'nginx', 'tollgate']);

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'CPU per GiB downloaded vs plain nginx',
    unit: '',
    is: 'at most',
    of: { peer: 'tollgate' },
    against: { peer: 'nginx' },
    metric: msPerGib,
    bar: 1.3,
    stretch: 1.0,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => estimateTransfers(options, peers.length, transferBytes);

/** @param {import('../run.mjs').Bench} bench */
export const run = (bench) => {
  const load = { path: `bytes/${transferBytes}`, transfer: { bytes: transferBytes, perConnection: 1 } };
  return transferBodies(bench, { peers, load, bars });
};
