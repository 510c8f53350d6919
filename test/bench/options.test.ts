import { describe, expect, it } from 'vitest';
import { parseOptions, UsageError } from '../../bench/options.mjs';

describe('options of npm run bench', () => {
  it('default to the values of the scenario', () => {
    expect(parseOptions([])).toMatchObject({ only: null, seconds: null, rounds: null, connections: null, workers: 1 });
  });

  it('accept lists and numbers', () => {
    const args = ['--only', 'metered-get', '--seconds', '4', '--connections', '16,64', '--rounds', '2', '--no-save'];
    expect(parseOptions(args)).toMatchObject({
      only: ['metered-get'],
      seconds: 4,
      connections: [16, 64],
      rounds: 2,
      save: false,
    });
  });

  it('require keys but no path for a gateway that is already running', () => {
    const args = ['--target', 'http://127.0.0.1:8080', '--keys', 'keys.ndjson'];
    expect(parseOptions(args)).toMatchObject({ target: 'http://127.0.0.1:8080', keys: 'keys.ndjson', path: null });
  });

  it.each([
    [['--seconds', '0']],
    [['--seconds', 'ten']],
    [['--connections', '16,']],
    [['--connections', '1e9']],
    [['--workers', '-1']],
    [['--driver', 'ab']],
    [['--unknown']],
    [['--target', 'http://127.0.0.1:8080']],
  ])('refuse %j with a reason', (args) => {
    expect(() => parseOptions(args)).toThrow(UsageError);
  });
});
