// @ts-check
// `npm test`: sets itself up, runs the guard rails and the tests, leaves nothing running, and ends with one line of counts.
//
//   npm test                       types, lint, import directions, and all tests
//   npm test -- test/upstream      only these tests; arguments go to vitest
//   npm run test:unit              only the tests that start no servers
//   npm run test:cluster           the tests that start a marketplace, with a Redis Cluster instead of one Redis

import { execFile } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { ensureChromium } from './local/chromium-install.mjs';
import { ensureClientPrograms } from './local/client-programs.mjs';
import { checkNodeVersion, ensureDependencies, projectDir } from './local/dependencies.mjs';
import { readJson } from './local/files.mjs';
import { signalProcess, spawnOwned } from './local/processes.mjs';
import { ensurePromtool } from './local/promtool-install.mjs';
import { ensureRedisServer } from './local/redis-install.mjs';
import { createScratch, folderOfTests } from './local/scratch.mjs';
import { countTests, summaryLine } from './local/test-counts.mjs';
import { planTests } from './local/test-plan.mjs';

/** @typedef {import('./local/test-counts.mjs').Counts} Counts */

const program = (/** @type {string} */ name) => path.join('node_modules', '.bin', name);
// Several threads of the compiler check what the files share once each. Here each checks beside the others.
const guardRails = [
  { name: 'types', command: program('tsc'), args: ['--noEmit', '--singleThreaded'] },
  { name: 'types of the pages', command: program('tsc'), args: ['-p', 'web', '--singleThreaded'] },
  { name: 'lint and format', command: program('biome'), args: ['check', '.'] },
  { name: 'import directions', command: process.execPath, args: ['scripts/check-imports.mjs'] },
];

/** @param {string} line */
const say = (line) => console.log(line);

/** @type {Readonly<Counts>} */
const noCounts = { passed: 0, failed: 0, skipped: 0 };

/** They run side by side: most of their time goes to the two type checks. @returns {Promise<Counts>} */
async function runGuardRails() {
  const counts = { ...noCounts };
  const startedAt = performance.now();
  await Promise.all(
    guardRails.map(async ({ name, command, args }) => {
      const output = await outputIfFailed(command, args);
      counts[output === null ? 'passed' : 'failed'] += 1;
      say(`${output === null ? 'ok    ' : 'FAILED'} ${name}`);
      if (output !== null) say(output);
    }),
  );
  say(`guard rails took ${((performance.now() - startedAt) / 1000).toFixed(1)} s`);
  return counts;
}

/** @param {string} command @param {readonly string[]} args @returns {Promise<string | null>} null: it succeeded */
async function outputIfFailed(command, args) {
  try {
    await promisify(execFile)(command, args, { cwd: projectDir, encoding: 'utf8', maxBuffer: 2 ** 28 });
    return null;
  } catch (error) {
    const { stdout = '', stderr = '', message } = /** @type {import('node:child_process').ExecFileException} */ (error);
    return `${stdout}${stderr}${message}`;
  }
}

/** @param {import('./local/scratch.mjs').Scratch} scratch @param {import('./local/test-plan.mjs').TestPlan} plan @returns {Promise<Counts>} */
async function runTests(scratch, { vitest: args, cluster }) {
  const reportFile = path.join(scratch.dir, 'report.json');
  const vitest = spawnOwned({
    runDir: scratch.runDir,
    name: 'vitest',
    command: program('vitest'),
    args: ['run', '--reporter=default', '--reporter=json', `--outputFile.json=${reportFile}`, ...args],
    cwd: projectDir,
    env: {
      ...process.env,
      TOLLGATE_SCRATCH_DIR: scratch.dir,
      ...(cluster ? { TOLLGATE_TEST_REDIS: 'cluster' } : {}),
    },
    stopSignal: 'SIGKILL',
  });
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.once(signal, () => {
      interruptedBy = signal;
      signalProcess(vitest.record, 'SIGKILL', true);
    });
  }
  const { code } = await vitest.exited;
  if (cluster) sayWhatNeedsOneRedis(scratch.dir);
  return countTests(readJson(reportFile), code);
}

/** The marks of test/support/redis-kind.ts. @param {string} dir */
function sayWhatNeedsOneRedis(dir) {
  const file = path.join(dir, 'one-redis.txt');
  const marks = existsSync(file) ? readFileSync(file, 'utf8').trimEnd().split('\n') : [];
  say(`${marks.length} groups of tests were skipped, because they need a single Redis:`);
  for (const mark of marks.toSorted()) say(`  ${mark}`);
}

/** @type {NodeJS.Signals | null} */
let interruptedBy = null;

async function main() {
  checkNodeVersion();
  ensureDependencies(say);
  const plan = planTests(process.argv.slice(2));
  if (plan.stores) {
    ensureRedisServer(say);
    ensureClientPrograms(say);
  }
  if (plan.browser) ensureChromium(say);
  if (plan.promtool) ensurePromtool(say);
  const rails = plan.checks ? await runGuardRails() : noCounts;
  const scratch = createScratch(folderOfTests());
  let tests;
  try {
    tests = await runTests(scratch, plan);
  } finally {
    await scratch.release();
  }
  if (interruptedBy !== null) say(`Interrupted by ${interruptedBy}`);
  say(summaryLine(rails, tests));
  process.exitCode = rails.failed + tests.failed > 0 ? 1 : 0;
}

main().catch((error) => {
  console.error(error instanceof Error ? error.message : error);
  say(summaryLine({ passed: 0, failed: 1, skipped: 0 }));
  process.exitCode = 1;
});
