// @ts-check
import { transferBodies } from './bodies.mjs';

export const question = 'What does it cost to pass on a response of 1 GiB?';

export const defaults = { connections: [1, 4], seconds: 60, rounds: 3 };

const transferBytes = 2 ** 30;

/** @param {import('../run.mjs').Bench} bench */
export const run = (bench) =>
  transferBodies(bench, {
    peers: ['direct', 'nginx', 'nginx-lua', 'tollgate'],
    load: { path: `bytes/${transferBytes}`, transfer: { bytes: transferBytes, perConnection: 1 } },
    what: 'CPU per GiB downloaded vs plain nginx',
  });
