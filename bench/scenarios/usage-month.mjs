// @ts-check
import { request } from '../../scripts/local/api.mjs';
import { environment, runMigrations, seed, startAll } from '../peers/tollgate.mjs';
import { found } from '../report/bars.mjs';
import { median } from '../report/summary.mjs';
import { serviceId } from '../stage/calls.mjs';
import { rateLimit, readKeys } from '../stage/keys.mjs';
import { dayAgo, insertMonth, monthDays } from '../stage/month.mjs';

export const question =
  'How long does GET /usage take for an account with a hundred million calls in a month, by its number of keys?';

/** `seconds` is not used: each page is asked for `requests` times, one after the other. */
export const defaults = { connections: [1], seconds: 4, rounds: 1 };

// Of the key's bucket there are six pages.
const requests = rateLimit / 6;
const numbersOfKeys = [1, 40, 1_000];

/** @type {import('../report/bars.mjs').Promised} */
const bar = {
  what: 'GET /usage of a month, 100 M calls',
  unit: 'ms',
  is: 'at most',
  bar: 50,
  stretch: 25,
};
// Measured and shown, but nothing is promised: a child with a hundred keys below it, and a longer range.
/** @type {import('../report/bars.mjs').Promised} */
const childBar = { ...bar, what: 'GET /usage of a month, a child key', bar: null, stretch: null };
/** @type {import('../report/bars.mjs').Promised} */
const yearBar = { ...bar, what: 'GET /usage of a year', bar: null, stretch: null };
export const bars = [bar, childBar, yearBar];

export const estimateSeconds = () => 240;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [
  { key: 'median', title: 'median ms', digits: 1 },
  { key: 'p99', title: 'p99 ms', digits: 1 },
];

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run({ stage, progress }) {
  const installed = await environment(stage, 'month');
  runMigrations(installed);
  await seed(stage, 'month', installed, { main: { count: numbersOfKeys.length, rateLimit, balanceUsd: 10 } });
  const roots = readKeys(stage.file('month-main.ndjson'));
  const accounts = numbersOfKeys.map((keys, i) => ({
    root: /** @type {import('../stage/keys.mjs').BenchKey} */ (roots[i]),
    keys,
  }));
  const children = await insertMonth(installed.database.url, accounts, progress);
  await startAll(stage, installed);
  const base = `http://127.0.0.1:${installed.port}/api/v1`;
  const month = `from=${dayAgo(monthDays - 1)}`;
  const rows = [];
  const found_ = [];
  for (const [i, { root, keys }] of accounts.entries()) {
    /** @type {[string, string, import('../stage/keys.mjs').BenchKey, import('../report/bars.mjs').Promised?][]} */
    const pages = [
      ['/usage, month', `/usage?${month}`, root, bar],
      ['/usage, year', `/usage?from=${dayAgo(364)}`, root, yearBar],
      ['/usage, one service, month', `/usage?${month}&service_id=${serviceId(7)}`, root],
      ['/usage/me, month', `/usage/me?${month}`, root],
      ['/keys', `/keys?limit=1000`, root],
      ['/statement/me', '/statement/me', root],
    ];
    const child = children[i];
    if (child !== undefined)
      pages.push(['/usage of a child and those below it, month', `/usage?${month}`, child, childBar]);
    for (const [label, path, key, promised] of pages) {
      progress(`${keys} keys: ${label}`);
      const row = await ask(`${keys} keys: ${label}`, `${base}${path}`, key);
      rows.push(row);
      if (promised !== undefined) found_.push(found(promised, row.label, [row.values.median], row.faults.length === 0));
    }
  }
  return { columns, rows, bars: found_, samples: [], notes: [] };
}

/** @param {string} label @param {string} url @param {import('../../scripts/local/api.mjs').Key} key */
async function ask(label, url, key) {
  const times = [];
  const faults = [];
  for (let i = 0; i < requests; i += 1) {
    const from = performance.now();
    const { status } = await request('GET', url, { key });
    times.push(performance.now() - from);
    if (status !== 200 && faults.length === 0) faults.push(`answered ${status}`);
  }
  times.sort((a, b) => a - b);
  const p99 = /** @type {number} */ (times[Math.ceil(0.99 * times.length) - 1]);
  return { label, peer: 'tollgate', values: { median: median(times), p99 }, ranges: {}, faults };
}
