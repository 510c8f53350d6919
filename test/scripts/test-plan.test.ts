import { describe, expect, it } from 'vitest';
import { planTests } from '../../scripts/local/test-plan.mjs';

describe('npm test', () => {
  it('without arguments checks types, lint and imports, and runs all tests', () => {
    expect(planTests([])).toEqual({ checks: true, stores: true, vitest: [] });
  });

  it('with a file runs that file and checks nothing else', () => {
    expect(planTests(['test/proxy/gate.test.ts'])).toEqual({
      checks: false,
      stores: true,
      vitest: ['test/proxy/gate.test.ts'],
    });
  });
});

describe('npm run test:unit', () => {
  const config = ['--config', 'vitest.unit.config.ts'];

  it('needs no Redis, checks nothing else, and takes a file too', () => {
    expect(planTests(['--unit'])).toEqual({ checks: false, stores: false, vitest: config });
    expect(planTests(['--unit', 'test/proxy']).vitest).toEqual([...config, 'test/proxy']);
  });
});
