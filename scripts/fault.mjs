// @ts-check
// `npm run test:fault`: many schedules of test/fault/ on demand.
//
//   npm run test:fault -- --schedules 1000      of seeds that were never run; the first is printed
//   npm run test:fault -- --seed 47             that one again
//
// Options: --seed N, --schedules N (default: 50, and 1 with --seed). Beyond 100 they run a hundred at a time, each hundred
// on an installation of its own.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { checkNodeVersion, ensureDependencies, projectDir } from './local/dependencies.mjs';
import { ensureRedisServer } from './local/redis-install.mjs';

const MAX_ROUND = 100;

/** @param {string} name @param {string | undefined} text @param {number} otherwise */
function wholeNumber(name, text, otherwise) {
  if (text === undefined) return otherwise;
  if (!/^\d{1,9}$/.test(text)) throw new Error(`--${name} must be a whole number: ${text}`);
  return Number(text);
}

/** @param {number} seed @param {number} schedules @returns {boolean} whether all went well */
function runRound(seed, schedules) {
  const vitest = path.join(projectDir, 'node_modules', '.bin', 'vitest');
  const env = { ...process.env, FAULT_SEED: String(seed), FAULT_SCHEDULES: String(schedules) };
  // One line a schedule, at its end: of a run that is cut short it is known how far it came.
  const args = ['run', '--reporter=verbose', 'test/fault/fault.test.ts'];
  const run = spawnSync(vitest, args, { cwd: projectDir, env, stdio: 'inherit' });
  if (run.error) throw run.error;
  return run.status === 0;
}

try {
  const { values } = parseArgs({ options: { seed: { type: 'string' }, schedules: { type: 'string' } } });
  const first = wholeNumber('seed', values.seed, Math.floor(Math.random() * 900_000_000));
  const schedules = wholeNumber('schedules', values.schedules, values.seed === undefined ? 50 : 1);
  checkNodeVersion();
  ensureDependencies(console.log);
  ensureRedisServer(console.log);
  console.log(`schedules of seeds ${first} to ${first + schedules - 1}`);
  let failed = false;
  for (let done = 0; done < schedules && !failed; done += MAX_ROUND) {
    failed = !runRound(first + done, Math.min(MAX_ROUND, schedules - done));
  }
  process.exitCode = failed ? 1 : 0;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
