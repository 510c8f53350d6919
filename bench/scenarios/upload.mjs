// @ts-check
import { estimateTransfers, msPerGib, transferBodies } from './bodies.mjs';

export const question = 'What does it cost to pass on large request bodies (8 MiB each; the limit is 10 MiB)?';

/** `seconds` is the longest time that the transfers of a connection may take. */
export const defaults = { connections: [1, 4], seconds: 60, rounds: 2 };

const transferBytes = 8 * 2 ** 20;
const perConnection = 32;
const peers = /** @type {const} */ (['direct', 'nginx', 'tollgate']);

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'CPU per GiB uploaded vs plain nginx',
    unit: '',
    is: 'at most',
    of: { peer: 'tollgate' },
    against: { peer: 'nginx' },
    metric: msPerGib,
    bar: null,
    stretch: null,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => estimateTransfers(options, peers.length, perConnection * transferBytes);

/** @param {import('../run.mjs').Bench} bench */
export const run = (bench) => {
  const load = { method: 'POST', path: 'upload', transfer: { bytes: transferBytes, perConnection } };
  return transferBodies(bench, { peers, load, bars });
};
