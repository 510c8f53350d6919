import { describe, expect, it } from 'vitest';
import { countTests, summaryLine } from '../../scripts/local/test-counts.mjs';

const report = (overrides = {}) => ({
  numPassedTests: 3,
  numFailedTests: 0,
  numPendingTests: 0,
  testResults: [{ status: 'passed', assertionResults: [{}, {}, {}] }],
  ...overrides,
});

describe('the last line of npm test', () => {
  it('adds up checks and tests, and names skipped ones only if there are any', () => {
    expect(summaryLine({ passed: 3, failed: 0, skipped: 0 }, { passed: 39, failed: 1, skipped: 0 })).toBe(
      '42 passed, 1 failed',
    );
    expect(summaryLine({ passed: 1, failed: 0, skipped: 2 })).toBe('1 passed, 0 failed, 2 skipped');
  });

  it('counts the tests of a run without failures', () => {
    expect(countTests(report({ numPendingTests: 1, numTodoTests: 1 }), 0)).toEqual({
      passed: 3,
      failed: 0,
      skipped: 2,
    });
  });

  it.each([
    ['no report was written', null, 1],
    ['the runner was killed after its report', report(), null],
    ['an error outside of the tests made the exit code', report(), 1],
    ['no test ran', report({ numPassedTests: 0, testResults: [] }), 0],
    ['a file could not be loaded', report({ testResults: [{ status: 'failed', assertionResults: [] }] }), 1],
  ])('has one failure when %s', (_, given, exitCode) => {
    expect(countTests(given, exitCode).failed).toBe(1);
  });
});
