// @ts-check
// `npm run test:fault`: runs as many fault schedules of test/fault/ as you ask for.
//
//   npm run test:fault -- --schedules 1000      1 000 schedules, from a random first seed, which is printed
//   npm run test:fault -- --seed 47 --times 9   the schedule of seed 47 again: the machine decides how its processes interleave
//   npm run test:fault -- --pairs 1000          1 000 pairs of equal calls at two gateways, no schedules
//   npm run test:fault -- --cluster             schedules on a Redis Cluster: each has a failover or a partition
//   npm run test:fault -- --histories           schedules of two and three faults of both stores, with --cluster too
//   npm run test:fault -- --histories --clocks  the same, and clocks jump ahead under way: Linux with a C compiler
//   npm run test:fault -- --cluster --wait      the same with REDIS_WAIT_REPLICAS=1, so that nothing may be lost
//
// Options: --seed N, --schedules N (default: 50, or 1 with --seed), --times N (how often each runs; default: once), --pairs N,
// --cluster, --wait, --histories, --clocks. More than 100 schedules run in groups of a hundred, each group on its own installation. After a group with a
// failure no further group runs.

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

/** @param {string} file @param {number} seed @param {number} schedules @param {number} times @returns {boolean} whether all schedules passed */
function runRound(file, seed, schedules, times) {
  const vitest = path.join(projectDir, 'node_modules', '.bin', 'vitest');
  const wanted = { FAULT_SEED: String(seed), FAULT_SCHEDULES: String(schedules), FAULT_TIMES: String(times) };
  const env = { ...process.env, ...wanted };
  // The verbose reporter prints a line at the end of each schedule, so an interrupted run shows how far it came.
  const args = ['run', '--reporter=verbose', file];
  const run = spawnSync(vitest, args, { cwd: projectDir, env, stdio: 'inherit' });
  if (run.error) throw run.error;
  return run.status === 0;
}

try {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      schedules: { type: 'string' },
      times: { type: 'string' },
      pairs: { type: 'string' },
      cluster: { type: 'boolean' },
      histories: { type: 'boolean' },
      clocks: { type: 'boolean' },
      wait: { type: 'boolean' },
    },
  });
  if (values.wait && (!values.cluster || values.histories))
    throw new Error('--wait needs --cluster and excludes --histories');
  if (values.cluster && process.platform !== 'linux')
    throw new Error('--cluster needs Linux: it uses 127.0.1.1 and on');
  if (values.clocks && !values.histories) throw new Error('--clocks needs --histories');
  if (values.pairs !== undefined && (values.cluster || values.histories || values.schedules !== undefined))
    throw new Error('--pairs excludes --cluster, --histories and --schedules');
  if (values.clocks) process.env.FAULT_CLOCKS = '1';
  if (values.wait) process.env.FAULT_WAIT = '1';
  if (values.cluster) process.env.FAULT_CLUSTER = '1';
  const file = `test/fault/${values.histories ? 'history' : values.cluster ? 'cluster' : 'fault'}.test.ts`;
  const first = wholeNumber('seed', values.seed, Math.floor(Math.random() * 900_000_000));
  const schedules = wholeNumber('schedules', values.schedules, values.seed === undefined ? 50 : 1);
  const times = wholeNumber('times', values.times, 1);
  checkNodeVersion();
  ensureDependencies(console.log);
  ensureRedisServer(console.log);
  if (values.pairs !== undefined) {
    process.env.FAULT_PAIRS = String(wholeNumber('pairs', values.pairs, 0));
    console.log(`pairs of seed ${first}`);
    process.exit(runRound(file, first, 0, 1) ? 0 : 1);
  }
  console.log(`schedules of seeds ${first} to ${first + schedules - 1}`);
  let failed = false;
  for (let done = 0; done < schedules && !failed; done += MAX_ROUND) {
    failed = !runRound(file, first + done, Math.min(MAX_ROUND, schedules - done), times);
  }
  process.exitCode = failed ? 1 : 0;
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
