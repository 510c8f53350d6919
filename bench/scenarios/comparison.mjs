// @ts-check
// An operator asks for a comparison of Redis with Postgres while all wallets are loaded and nothing else happens.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { request } from '../../scripts/local/api.mjs';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { found } from '../report/bars.mjs';
import { median } from '../report/summary.mjs';
import { rateLimit } from '../stage/keys.mjs';
import { manyKeys, seedSeconds } from './flush.mjs';

export const question =
  'How long does a comparison of all wallets take, compared with another commit, whose built checkout BENCH_BEFORE names?';

export const defaults = { connections: [1], seconds: 0, rounds: 5 };

/** @type {import('../report/bars.mjs').Promised} */
const bar = { what: 'seconds of a comparison, now vs before', unit: '', is: 'at most', bar: 1, stretch: null };

export const bars = [bar];

/** @param {import('../run.mjs').RunOptions} options */
export const estimateSeconds = ({ rounds, events }) =>
  2 * ((seedSeconds * (events ?? manyKeys)) / manyKeys) + 10 * rounds;

/** @type {import('../report/summary.mjs').Column[]} */
const columns = [{ key: 'seconds', title: 's', digits: 2 }];
const checkouts = { tollgate: projectDir, 'tollgate-before': process.env.BENCH_BEFORE };

/** @param {string} dir @param {string} databaseUrl @returns {import('../../scripts/local/api.mjs').Key} */
function adminOf(dir, databaseUrl) {
  const args = [path.join(dir, 'dist', 'main.js'), 'create-admin'];
  const env = { ...process.env, DATABASE_URL: databaseUrl };
  const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: dir, env, encoding: 'utf8' });
  const [, keyId, secret] = /^key_id +(\S+)\nsecret +(\S+)$/m.exec(stdout) ?? [];
  if (keyId === undefined || secret === undefined) throw new Error(`create-admin failed:\n${stdout}${stderr}`);
  return { key_id: keyId, secret };
}

/**
 * The gateway answers 503 when a comparison takes longer than any answer may. The next request waits for the same comparison.
 * @param {string} url @param {import('../../scripts/local/api.mjs').Key} key
 */
async function compare(url, key) {
  for (;;) {
    const answer = await request('POST', url, { key });
    if (answer.status !== 503) return answer;
  }
}

/** @param {import('../run.mjs').Bench} bench @returns {Promise<import('../run.mjs').Findings>} */
export async function run({ stage, options, peers, progress }) {
  const count = options.events ?? manyKeys;
  const contestants = [];
  const keySets = { main: { count, rateLimit, balanceUsd: 1 } };
  for (const { name, port } of await peers(['tollgate-before', 'tollgate'], { keySets })) {
    const { url } = await stage.database(`bench_${name.replaceAll('-', '_')}`);
    const key = adminOf(checkouts[/** @type {keyof typeof checkouts} */ (name)] ?? '', url);
    contestants.push({ name, key, url: `http://127.0.0.1:${port}/api/v1/admin/reconciliation`, seconds: [0] });
  }
  // The first one of each is not counted: it compiles its code.
  for (let round = 0; round <= options.rounds; round += 1) {
    for (const { name, url, key, seconds } of contestants) {
      progress(`round ${round}/${options.rounds}: ${name}`);
      const startedAt = performance.now();
      const { status, body } = await compare(url, key);
      seconds[round] = (performance.now() - startedAt) / 1000;
      if (status !== 200 || body.drifting_accounts > 0) throw new Error(`${name}: ${status} ${JSON.stringify(body)}`);
    }
  }
  const label = `${count} wallets`;
  const [before = [], now = []] = contestants.map(({ seconds }) => seconds.slice(1));
  const ratios = now.map((value, round) => value / (before[round] ?? Number.NaN));
  const rows = contestants.map(({ name, seconds }) => {
    const counted = seconds.slice(1);
    const ranges = { seconds: /** @type {[number, number]} */ ([Math.min(...counted), Math.max(...counted)]) };
    return { label, peer: name, values: { seconds: median(counted) }, ranges, faults: [] };
  });
  return { columns, rows, bars: [found(bar, label, ratios, true)], samples: [], notes: [] };
}
