// @ts-check
// Makes the line of counts at the end of `npm test` from vitest's JSON report.

/**
 * @typedef {object} Counts
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 *
 * @typedef {object} Report the part of vitest's JSON report that is read here
 * @property {number} numPassedTests
 * @property {number} numFailedTests
 * @property {number} numPendingTests
 * @property {number} [numTodoTests]
 * @property {{ status: string, assertionResults: unknown[] }[]} testResults one per file
 */

/**
 * A run that crashed, that ran no test, or that failed outside a test counts as a failure, even if all tests that ran passed.
 * @param {Report | null} report null if vitest wrote none
 * @param {number | null} exitCode null if vitest was killed
 * @returns {Counts}
 */
export function countTests(report, exitCode) {
  if (report === null) return { passed: 0, failed: 1, skipped: 0 };
  const passed = report.numPassedTests;
  const skipped = report.numPendingTests + (report.numTodoTests ?? 0);
  // A test file that cannot be loaded has failed, but has no tests to count.
  const brokenFiles = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  );
  const failed = report.numFailedTests + brokenFiles.length;
  const failedOutside = failed === 0 && (exitCode !== 0 || passed === 0);
  return { passed, failed: failedOutside ? 1 : failed, skipped };
}

/** @param {Counts[]} parts */
export function summaryLine(...parts) {
  const sum = (/** @type {keyof Counts} */ key) => parts.reduce((total, part) => total + part[key], 0);
  const skipped = sum('skipped');
  return `${sum('passed')} passed, ${sum('failed')} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}
