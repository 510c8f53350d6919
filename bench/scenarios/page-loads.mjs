// @ts-check
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { get } from 'node:http';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync } from 'node:zlib';
import { freePort, isPortFree } from '../../scripts/local/ports.mjs';
import { spawnOwned, stopProcess } from '../../scripts/local/processes.mjs';
import { alternate, alternateSeconds, loadSeconds } from '../measure/rounds.mjs';
import { evaluate } from '../report/bars.mjs';
import { callColumns, median, toRows } from '../report/summary.mjs';
import { fundedKeys } from '../stage/keys.mjs';

export const question =
  'What do calls at half load notice of people who open 50 pages of the catalog a second, from a gateway with 1 000 services?';

export const defaults = { connections: [64], seconds: 6, rounds: 5 };

const loadsPerSecond = 50;
const services = 1_000;
const without = 'no pages';
/** The same visitors and the same bytes, from an nginx beside the gateway: what they take of this machine, whichever program serves them. */
const elsewhere = `${loadsPerSecond} page loads/s from nginx`;
const beside = `${loadsPerSecond} page loads/s from the gateway`;

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [
  {
    what: 'p99 of calls at half load, page loads from the gateway vs from nginx',
    unit: '',
    is: 'at most',
    of: { peer: 'tollgate', variant: beside },
    against: { peer: 'tollgate', variant: elsewhere },
    metric: ({ latency }) => latency.p99,
    bar: 1.25,
    stretch: 1.05,
  },
];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = (options) => alternateSeconds({ ...options, rounds: 1 }, 3 * options.rounds + 1);

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run(bench) {
  const { stage, options } = bench;
  const once = { ...bench, options: { ...options, rounds: 1 } };
  const main = fundedKeys((3 * options.rounds + 1) * loadSeconds(once.options, 1));
  const [peer] = await bench.peers(['tollgate'], { keySets: { main }, services });
  if (peer === undefined) throw new Error('the peer tollgate has to take part');
  const { connections } = options;
  const closed = await alternate(once, { contestants: [{ peer, load: {}, variant: 'saturation' }], connections });
  const ratePerSecond = Math.round(median(closed.map(({ callsPerSecond }) => callsPerSecond)) / 2);
  const { page, files } = await readPage(peer.port);
  const nginxPort = await startNginx(stage, page, files);
  const samples = [...closed];
  const visits = { loads: 0, bytes: 0, failed: 0, seconds: 0, lastError: '' };
  for (let round = 1; round <= options.rounds; round += 1) {
    for (const variant of [without, elsewhere, beside]) {
      const from = variant === beside ? peer.port : nginxPort;
      const visitors = variant === without ? null : startVisitors(stage, from, [...files.keys()]);
      const measured = await alternate(once, {
        contestants: [{ peer, load: { ratePerSecond }, variant }],
        connections,
      });
      samples.push(...measured.map((sample) => ({ ...sample, round })));
      if (visitors !== null) add(visits, await visitors.end());
    }
  }
  if (visits.loads === 0 || visits.failed > visits.loads / 100) {
    throw new Error(`${visits.failed} of ${visits.loads + visits.failed} page loads failed: ${visits.lastError}`);
  }
  const notes = [
    `rate: ${ratePerSecond} calls/s, half of what the gateway can do; each call is timed from the moment at which it was due`,
    `${(visits.loads / visits.seconds).toFixed(1)} page loads/s, ${(visits.bytes / visits.loads / 1024).toFixed(0)} KiB each ` +
      `with all files, ${visits.failed} failed. The visitors are a process on the same processors as everything else`,
  ];
  return { columns: callColumns, rows: toRows(samples), bars: evaluate(samples, bars), samples, notes };
}

/** The front page, and the files that it names, as a browser gets them: compressed. @param {number} port */
async function readPage(port) {
  const page = await getBytes(port, '/');
  const paths = new Set(String(brotliDecompressSync(page)).match(/\/assets\/[\w.-]+/g) ?? []);
  if (paths.size < 3) throw new Error('the gateway serves no pages');
  /** @type {Map<string, Buffer>} */
  const files = new Map();
  for (const name of paths) files.set(name, await getBytes(port, name));
  return { page, files };
}

/** @param {number} port @param {string} path @returns {Promise<Buffer>} */
function getBytes(port, path) {
  return new Promise((resolve, reject) => {
    const headers = { Accept: 'text/html', 'Accept-Encoding': 'br, gzip' };
    get({ host: '127.0.0.1', port, path, headers }, async (response) => {
      const chunks = [];
      for await (const chunk of response) chunks.push(chunk);
      resolve(Buffer.concat(chunks));
    }).on('error', reject);
  });
}

/**
 * @param {import('../stage/stage.mjs').Stage} stage @param {Buffer} page @param {ReadonlyMap<string, Buffer>} files
 * @returns {Promise<number>} its port
 */
async function startNginx(stage, page, files) {
  const port = await freePort();
  const dir = stage.file('page-files');
  mkdirSync(path.join(dir, 'root', 'assets'), { recursive: true });
  writeFileSync(path.join(dir, 'root', 'index.html'), page);
  for (const [name, bytes] of files) writeFileSync(path.join(dir, 'root', name), bytes);
  const config = path.join(dir, 'nginx.conf');
  writeFileSync(
    config,
    `daemon off; ${process.getuid?.() === 0 ? 'user root;' : ''} pid ${dir}/pid; error_log ${dir}/error.log; worker_processes 1; events {}
     http { access_log off; client_body_temp_path ${dir}/a; proxy_temp_path ${dir}/b; fastcgi_temp_path ${dir}/c;
       uwsgi_temp_path ${dir}/d; scgi_temp_path ${dir}/e;
       server { listen 127.0.0.1:${port}; root ${dir}/root; index index.html; } }`,
  );
  await stage.start({
    name: 'page-files',
    command: 'nginx',
    args: ['-c', config, '-p', dir],
    extent: 'tree',
    isReady: async () => !(await isPortFree(port, '127.0.0.1')),
  });
  return port;
}

/** @param {import('../stage/stage.mjs').Stage} stage @param {number} port @param {readonly string[]} files */
function startVisitors(stage, port, files) {
  const resultFile = stage.file(`page-visitors-${Date.now()}.json`);
  const child = spawnOwned({
    runDir: stage.scratch.runDir,
    name: 'page-visitors',
    command: process.execPath,
    args: [
      fileURLToPath(new URL('../load/page-visitors.mjs', import.meta.url)),
      String(port),
      String(loadsPerSecond),
      resultFile,
      ...files,
    ],
    logFile: stage.file('page-visitors.log'),
  });
  const startedAt = performance.now();
  return {
    end: async () => {
      await stopProcess(child.record);
      const seconds = (performance.now() - startedAt) / 1000;
      return { ...JSON.parse(readFileSync(resultFile, 'utf8')), seconds };
    },
  };
}

/** @typedef {{ loads: number, bytes: number, failed: number, seconds: number, lastError: string }} Visits */

/** @param {Visits} sum @param {Visits} more */
function add(sum, { loads, bytes, failed, seconds, lastError }) {
  sum.loads += loads;
  sum.bytes += bytes;
  sum.failed += failed;
  sum.seconds += seconds;
  sum.lastError ||= lastError;
}
