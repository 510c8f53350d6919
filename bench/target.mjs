// @ts-check
// Measures a gateway that runs already, from outside: calls and latencies, without peers and without CPU.

import { probe } from './measure/probe.mjs';
import { alternate, alternateSeconds } from './measure/rounds.mjs';
import { nothingWatched } from './peers/peer.mjs';
import { callColumns, toRows } from './report/summary.mjs';
import { readKeys, writeAuthFile } from './stage/keys.mjs';

export const targetScenario = {
  name: 'target',
  question: 'How many calls does this gateway answer, and how fast?',
  defaults: { connections: [16, 64], seconds: 10, rounds: 3 },
  bars: [],
  estimateSeconds: (/** @type {import('./run.mjs').RunOptions} */ options) => alternateSeconds(options, 1),
};

// Only the user can say which service gets the load and who pays for it. So without --path the load goes to a page of the
// gateway itself.
const ownPath = '/api/v1/discover?limit=20';

/**
 * @param {{ target: string, keys: string, path: string | null }} wanted
 * @returns {(bench: import('./run.mjs').Bench) => Promise<import('./run.mjs').Findings>}
 */
export const runTarget =
  ({ target, keys, path }) =>
  async (bench) => {
    const url = new URL(target);
    /** @type {import('./peers/peer.mjs').Peer} */
    const peer = {
      name: url.host,
      protocol: url.protocol === 'https:' ? 'https' : 'http',
      host: url.hostname,
      port: Number(url.port || (url.protocol === 'https:' ? 443 : 80)),
      prefix: '',
      authFiles: { main: writeAuthFile(bench.stage.file('target.auth'), readKeys(keys)) },
      watched: nothingWatched(),
      settled: async () => {},
    };
    const load = { rawPath: path ?? ownPath };
    await probe(peer, load);
    const contestants = [{ peer, load }];
    const samples = await alternate(bench, { contestants, connections: bench.options.connections });
    const notes = [
      `GET ${load.rawPath}`,
      ...(path === null ? ['no service was called: name one with --path /api/v1/proxy/<service id>/<path>'] : []),
      'a key may make only as many calls a minute as its limit: if answers are 429, seed more keys',
    ];
    return { columns: callColumns, rows: toRows(samples), bars: [], samples, notes };
  };
