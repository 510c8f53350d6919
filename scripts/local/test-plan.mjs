// @ts-check
// What `npm test` and `npm run test:unit` do, from their arguments.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { projectDir } from './dependencies.mjs';

/**
 * @typedef {object} TestPlan
 * @property {boolean} checks types, lint and import directions: only when nothing was asked for in particular
 * @property {boolean} stores whether the tests need a Redis server program
 * @property {boolean} browser whether some of the tests need a browser
 * @property {string[]} vitest arguments
 */

/**
 * @param {readonly string[]} args of the command line
 * @param {readonly string[]} browserTests the files whose tests need a browser
 * @returns {TestPlan}
 */
export function planTests(args, browserTests = findBrowserTests()) {
  const rest = args.filter((arg) => arg !== '--unit');
  const isUnit = rest.length < args.length;
  return {
    checks: args.length === 0,
    stores: !isUnit,
    browser: !isUnit && browserTests.some((file) => mayRun(file, rest)),
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
 * @returns {string[]} the test files that import test/support/browser.ts. A file that needs a browser through another helper is
 *   not among them; it runs only where a Chromium is installed already, and fails elsewhere
 */
function findBrowserTests() {
  const files = readdirSync(path.join(projectDir, 'test'), { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join('test', file))
    .filter((file) => file.endsWith('.test.ts'));
  return files.filter((file) =>
    /from '[./]*support\/browser\.ts'/.test(readFileSync(path.join(projectDir, file), 'utf8')),
  );
}
