// @ts-check
import { setTimeout as sleep } from 'node:timers/promises';
import { drive } from '../load/drive.mjs';
import { watchMachine } from '../measure/machine-share.mjs';
import { exactCpuSecondsOf, rssBytesOf } from '../measure/proc.mjs';
import { jobOf } from '../measure/sample.mjs';
import { found } from '../report/bars.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question = 'What does an installation use that nobody calls?';

/**
 * `seconds` is the length of a window without calls. The median of the windows counts: V8 gives back what a load took by up to three
 * collections of 40 to 70 ms in each process, when it chooses, up to 100 s after the one before. With one window, it depended on the
 * start whether one of them was in it.
 */
export const defaults = { connections: [64], seconds: 10, rounds: 4 };

const loadSeconds = 3;
// In this time the last events are stored, and all wallets are compared twice more, each time within a minute and 4 s. From then on,
// they are compared every ten minutes.
const restSeconds = 127;

/** @type {import('../report/bars.mjs').Promised} */
const bar = {
  what: 'CPU without calls: gateway, supervisor, writer and Redis (10 ms/s are 1 % of a core)',
  unit: 'ms/s',
  is: 'at most',
  bar: 5,
  stretch: 2,
};
export const bars = [bar];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ seconds, rounds }) => loadSeconds + restSeconds + seconds * rounds;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'sum', title: 'sum ms/s', digits: 2, hasRange: true },
  { key: 'proxy', title: 'gateway + supervisor ms/s', digits: 2 },
  { key: 'writer', title: 'writer ms/s', digits: 2 },
  { key: 'redis', title: 'Redis ms/s', digits: 2 },
  { key: 'postgres', title: 'Postgres ms/s', digits: 2 },
  { key: 'rssMiB', title: 'RSS MiB without stores', digits: 0 },
];

const parts = /** @type {const} */ (['proxy', 'writer', 'redis', 'postgres']);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options, processors } = bench;
  const peers = await bench.peers(['tollgate-default'], { keySets: { main: fundedKeys(loadSeconds) } });
  const [peer] = /** @type {[import('../peers/peer.mjs').Peer]} */ (peers);
  // Some load first, so that pools are filled and code is compiled, as in an installation that has been used.
  const [connections = 64] = options.connections;
  await drive(stage.scratch, options.driver, jobOf(peer, {}, { connections, seconds: loadSeconds }));
  await peer.settled();
  bench.progress('resting');
  await sleep(restSeconds * 1000);
  const samples = [];
  for (let round = 1; round <= options.rounds; round += 1) {
    bench.progress(`idle, round ${round}/${options.rounds}`);
    samples.push(await idleSample(stage, peer, options.seconds, processors));
  }
  const sums = samples.map(({ sum }) => sum).sort((a, b) => a - b);
  const middle = samples.find(({ sum }) => sum === sums[sums.length >> 1]);
  const ranges = { sum: /** @type {[number, number]} */ ([sums[0], sums.at(-1)]) };
  const row = { label: 'nobody calls', peer: peer.name, values: { ...middle }, ranges, faults: [] };
  const notes = ['Postgres is not in the sum: most of what it does then is its own housekeeping'];
  return { columns, rows: [row], bars: [found(bar, 'nobody calls', sums, true)], samples, notes };
}

/**
 * @param {import('../stage/stage.mjs').Stage} stage @param {import('../peers/peer.mjs').Peer} peer
 * @param {number} seconds @param {number} processors
 */
async function idleSample(stage, { watched }, seconds, processors) {
  const read = () => parts.map((part) => exactCpuSecondsOf(watched[part]));
  const machine = watchMachine(stage, processors);
  const [before, startedAt] = [read(), performance.now()];
  await sleep(seconds * 1000);
  const [after, elapsedSeconds] = [read(), (performance.now() - startedAt) / 1000];
  const msPerSecond = (/** @type {number} */ part) =>
    (((after[part] ?? 0) - (before[part] ?? 0)) * 1000) / elapsedSeconds;
  const [proxy, writer, redis, postgres] = [msPerSecond(0), msPerSecond(1), msPerSecond(2), msPerSecond(3)];
  const rssMiB = rssBytesOf([...watched.proxy, ...watched.writer]) / 2 ** 20;
  return { sum: proxy + writer + redis, proxy, writer, redis, postgres, rssMiB, ...machine.stop() };
}
