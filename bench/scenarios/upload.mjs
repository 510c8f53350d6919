// @ts-check
import { transferBodies } from './bodies.mjs';

export const question = 'What does it cost to pass on large request bodies (8 MiB each; the limit is 10 MiB)?';

export const defaults = { connections: [1, 4], seconds: 60, rounds: 3 };

const transferBytes = 8 * 2 ** 20;

/** @param {import('../run.mjs').Bench} bench */
export const run = (bench) =>
  transferBodies(bench, {
    peers: ['direct', 'nginx', 'nginx-lua', 'tollgate'],
    load: { method: 'POST', path: 'upload', transfer: { bytes: transferBytes, perConnection: 64 } },
    what: 'CPU per GiB uploaded vs plain nginx',
  });
