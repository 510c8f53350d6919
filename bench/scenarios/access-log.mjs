// @ts-check
import { proxyCpu } from '../report/summary.mjs';
import { comparison } from './small-calls.mjs';

export const question = 'What does the access log (ACCESS_LOG=on) add to a small metered call?';

export const defaults = { connections: [64], seconds: 4, rounds: 5 };

const peerNames = /** @type {const} */ (['tollgate', 'tollgate-access-log']);

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'CPU with the access log vs without',
    unit: '',
    is: 'at most',
    bar: 1.03,
    stretch: null,
    of: { peer: 'tollgate-access-log' },
    against: { peer: 'tollgate' },
    metric: proxyCpu,
  },
];

export const { estimateSeconds, run } = comparison(peerNames, bars, () => ['the log goes to a file']);
