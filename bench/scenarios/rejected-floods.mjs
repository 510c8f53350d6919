// @ts-check
import { drive } from '../load/drive.mjs';
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { jobOf } from '../measure/sample.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, proxyCpu, toRows } from '../report/summary.mjs';
import { fundedKeys, keysFor, rateLimit } from '../stage/keys.mjs';

/**
 * @typedef {import('../measure/rounds.mjs').Contestant} Contestant
 * @typedef {import('../run.mjs').Bench} Bench
 */

export const question =
  'What does a call cost that is refused because its key is over its limit or its wallet is empty?';

export const defaults = { connections: [64], seconds: 4, rounds: 3 };

const flood = (/** @type {string} */ keySet, /** @type {number} */ expectStatus) => ({
  variant: `${expectStatus} flood`,
  load: { keySet, expectStatus, tolerateStatus: 200 },
});
const metered = { variant: 'metered call', load: {} };
const floods = [flood('limited', 429), flood('poor', 402)];

const peerNames = /** @type {const} */ (['tollgate']);

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = floods.map(({ variant }) => ({
  what: `CPU per call of a ${variant} vs a metered call`,
  unit: '',
  is: 'at most',
  of: { peer: 'tollgate', variant },
  against: { peer: 'tollgate', variant: metered.variant },
  metric: proxyCpu,
  bar: 0.6,
  stretch: 0.4,
}));

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => {
  const contestants = peerNames.length * (1 + floods.length);
  return alternateSeconds(options, contestants) + 2 * exhaustSeconds * contestants;
};

// How often `exhaust` sends for two seconds before it gives up. That is enough to use up the 10 free calls of all keys of a run.
const exhaustAttempts = 20;
const exhaustSeconds = 2;

/**
 * Sends calls until fewer than one in a thousand passes, because tokens and free calls of these keys are used up.
 * @param {Bench} bench
 * @param {Contestant} contestant
 */
async function exhaust({ stage, options }, { peer, load }) {
  for (let attempt = 0; attempt < exhaustAttempts; attempt += 1) {
    const job = jobOf(peer, load, { connections: 64, seconds: exhaustSeconds });
    const { calls, tolerated } = await drive(stage.scratch, options.driver, job);
    if (tolerated < calls / 1000) return;
  }
  throw new Error(`${peer.name}: calls still pass with keys whose tokens or free calls should be used up`);
}

/** @param {Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { connections } = bench.options;
  const seconds = loadSeconds(bench.options, connections.length);
  const keySets = {
    main: fundedKeys(seconds),
    // Together these keys get fifty tokens a minute, so fewer than one call in ten thousand passes.
    limited: { count: 50, rateLimit: 1, balanceUsd: 10 },
    // A call that is refused with 402 takes a token, so a flood of 402 needs as many keys as a load of calls that pass.
    poor: { count: keysFor(seconds + exhaustAttempts), rateLimit, balanceUsd: 0 },
  };
  const peers = await bench.peers(peerNames, { keySets });
  const contestants = [metered, ...floods].flatMap((kind) => peers.map((peer) => ({ peer, ...kind })));
  for (const contestant of contestants) if (contestant.variant !== metered.variant) await exhaust(bench, contestant);
  const samples = await alternate(bench, { contestants, connections });
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes: [] };
}
