// @ts-check
import { request } from '../../scripts/local/api.mjs';
import { environment, rebuildSums, runMigrations, seed, startAll } from '../peers/tollgate.mjs';
import { median } from '../report/summary.mjs';
import { insertCalls, providerId, serviceId } from '../stage/calls.mjs';
import { rateLimit, readKeys } from '../stage/keys.mjs';

export const question =
  'How long do pages take with a hundred days of calls, for a key with a tenth of them and for one with ten?';

/** `seconds` is not used: each page is asked for `requests` times, one after the other. */
export const defaults = { connections: [1], seconds: 4, rounds: 1 };

const defaultCalls = 1_000_000;
const requests = 25;
const keys = 2_000;

/** @type {import('../report/bars.mjs').Bar[]} */
export const bars = [];

// For the estimate: making calls and their sums runs at about this pace, or faster.
const estimatedCallsPerSecond = 5_000;

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ events }) => (events ?? defaultCalls) / estimatedCallsPerSecond;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'median', title: 'median ms', digits: 1 },
  { key: 'longest', title: 'longest ms', digits: 1 },
];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run({ stage, options, progress }) {
  const calls = options.events ?? defaultCalls;
  const installed = await environment(stage, 'pages');
  runMigrations(installed);
  await seed(stage, 'pages', installed, { main: { count: keys, rateLimit, balanceUsd: 10 } });
  const buyers = readKeys(stage.file('pages-main.ndjson'));
  await insertCalls(installed.database.url, buyers, calls, progress, () => rebuildSums(installed));
  const startedAt = performance.now();
  await startAll(stage, installed);
  const readySeconds = (performance.now() - startedAt) / 1000;
  const base = `http://127.0.0.1:${installed.port}/api/v1`;
  const provider = await providerKey(base);
  const [busy, few] = [buyers[0], buyers.at(-1)];
  /** @type {[string, string, import('../../scripts/local/api.mjs').Key | undefined][]} */
  const pages = [
    ['/usage/me, a tenth of all calls', '/usage/me', busy],
    ['/usage/me, ten calls', '/usage/me', few],
    ['/usage, a tenth of all calls', '/usage', busy],
    ['/keys/me, a tenth of all calls', '/keys/me', busy],
    ['/keys/me, ten calls', '/keys/me', few],
    ['/statement/me, a tenth of all calls', '/statement/me', busy],
    ['/statement/me, ten calls', '/statement/me', few],
    ['/earnings/me, 20 services', '/earnings/me', provider],
    ['/services/{id}/calls', `/services/${serviceId(50)}/calls`, provider],
    ['/services/{id}/stats', `/services/${serviceId(50)}/stats`, undefined],
  ];
  const rows = [];
  for (const [label, path, key] of pages) rows.push(await ask(label, `${base}${path}`, key));
  const notes = [`ready after ${readySeconds.toFixed(1)} s with ${calls} calls`];
  return { columns, rows, bars: [], samples: [], notes };
}

/** @param {string} label @param {string} url @param {import('../../scripts/local/api.mjs').Key | undefined} key */
async function ask(label, url, key) {
  const times = [];
  const faults = [];
  for (let i = 0; i < requests; i += 1) {
    const from = performance.now();
    const { status } = await request('GET', url, key === undefined ? {} : { key });
    times.push(performance.now() - from);
    if (status !== 200 && faults.length === 0) faults.push(`answered ${status}`);
  }
  return {
    label,
    peer: 'tollgate',
    values: { median: median(times), longest: Math.max(...times) },
    ranges: {},
    faults,
  };
}

/** A key of the first provider, made by an admin. @param {string} base */
async function providerKey(base) {
  const admin = await request('POST', `${base}/keys`, { body: { owner_id: 'bench', role: 'admin' } });
  const made = await request('POST', `${base}/keys`, {
    key: admin.body,
    body: { role: 'provider', account_id: providerId(1) },
  });
  if (made.status !== 201) throw new Error(`POST /keys answered ${made.status}: ${JSON.stringify(made.body)}`);
  return made.body;
}
