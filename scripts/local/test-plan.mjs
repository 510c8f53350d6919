// @ts-check
// What `npm test`, `npm run test:unit` and `npm run test:cluster` do, from their arguments.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { projectDir } from './dependencies.mjs';

/**
 * @typedef {object} TestPlan
 * @property {boolean} checks types, lint and import directions: only when nothing was asked for in particular
 * @property {boolean} stores whether the tests need a Redis server program
 * @property {boolean} browser whether some of the tests need a browser
 * @property {boolean} promtool whether some of the tests need promtool
 * @property {boolean} cluster whether marketplaces have a Redis Cluster
 * @property {string[]} vitest arguments
 */

/**
 * @param {readonly string[]} args of the command line
 * @param {readonly string[]} browserTests the files whose tests need a browser
 * @param {readonly string[]} promtoolTests the files whose tests need promtool
 * @param {readonly string[]} marketTests the files whose tests start a marketplace
 * @returns {TestPlan}
 */
export function planTests(
  args,
  browserTests = testsThatImport(/from '[./]*support\/browser\.ts'/),
  promtoolTests = testsThatImport(/from '[./\w]*local\/promtool-install\.mjs'/),
  marketTests = testsThatImport(/\b(Marketplace|WorkerStack)\.start\(|support\/redis-kind\.ts'|web-market\.ts'/),
) {
  const [isUnit, isCluster] = [args.includes('--unit'), args.includes('--cluster')];
  const asked = args.filter((arg) => arg !== '--unit' && arg !== '--cluster');
  // That file starts clusters of its own, whatever the kind.
  const onCluster = marketTests.filter((file) => !file.endsWith('/redis-cluster.test.ts'));
  const rest = isCluster && asked.length === 0 ? onCluster : asked;
  return {
    checks: args.length === 0,
    stores: !isUnit,
    browser: !isUnit && browserTests.some((file) => mayRun(file, rest)),
    promtool: !isUnit && promtoolTests.some((file) => mayRun(file, rest)),
    cluster: isCluster,
    vitest: [...(isUnit ? ['--config', 'vitest.unit.config.ts'] : []), ...rest],
  };
}

/**
 * Whether vitest may run a test file. It runs the files whose paths contain one of the arguments, or all files if there is no such
 * argument. With an option it may run any file, because only vitest knows which of the arguments is the option's value.
 * @param {string} file
 * @param {readonly string[]} args
 */
function mayRun(file, args) {
  return args.length === 0 || args.some((arg) => arg.startsWith('-') || file.includes(arg));
}

/**
 * @param {RegExp} what how an import of what needs the program looks, or a use of it
 * @returns {string[]} the test files that have such an import. A file that needs the program through another helper is not among
 *   them; it runs only where the program is installed already, and fails elsewhere
 */
function testsThatImport(what) {
  const files = readdirSync(path.join(projectDir, 'test'), { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join('test', file))
    .filter((file) => file.endsWith('.test.ts'));
  return files.filter((file) => what.test(readFileSync(path.join(projectDir, file), 'utf8')));
}
