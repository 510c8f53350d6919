// @ts-check
// A gateway that runs already, seen from outside: calls and latencies, no peers and no CPU.

import { probe } from './measure/probe.mjs';
import { alternate } from './measure/rounds.mjs';
import { nothingWatched } from './peers/peer.mjs';
import { callColumns, toRows } from './report/summary.mjs';
import { readKeys, writeAuthFile } from './stage/keys.mjs';

export const question = 'How many calls does this gateway answer, and how fast?';

export const defaults = { connections: [16, 64], seconds: 10, rounds: 3 };

/**
 * @param {{ target: string, keys: string, path: string }} wanted
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
    const load = { rawPath: path };
    await probe(peer, load);
    const contestants = [{ peer, load }];
    const samples = await alternate(bench, { contestants, connections: bench.options.connections });
    const notes = ['a key makes at most its limit of calls a minute: if answers are 429, seed more keys'];
    return { columns: callColumns, rows: toRows(samples), comparisons: [], samples, notes };
  };
