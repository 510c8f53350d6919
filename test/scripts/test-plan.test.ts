import { describe, expect, it } from 'vitest';
import { planTests } from '../../scripts/local/test-plan.mjs';

const browserTests = ['test/integration/browsers.test.ts'];
const promtoolTests = ['test/deploy/alert-rules.test.ts'];

describe('npm test', () => {
  it('without arguments checks types, lint and imports, and runs all tests', () => {
    expect(planTests([], browserTests, promtoolTests)).toEqual({
      checks: true,
      stores: true,
      browser: true,
      promtool: true,
      cluster: false,
      vitest: [],
    });
  });

  it('with a file runs that file and checks nothing else', () => {
    expect(planTests(['test/proxy/gate.test.ts'])).toEqual({
      checks: false,
      stores: true,
      browser: false,
      promtool: false,
      cluster: false,
      vitest: ['test/proxy/gate.test.ts'],
    });
  });
});

describe('a browser is prepared for', () => {
  it.each([[browserTests], [['test/integration']], [['test/proxy', 'browsers']], [['-t', 'price']]])(
    'npm test -- %j',
    (args) => {
      expect(planTests(args, browserTests).browser).toBe(true);
    },
  );

  it('the files that import the browser helper', () => {
    for (const file of browserTests) expect(planTests([file]).browser).toBe(true);
    expect(planTests(['test/scripts/test-plan.test.ts']).browser).toBe(false);
  });
});

describe('promtool is prepared for', () => {
  it('the files that use it', () => {
    for (const file of promtoolTests) expect(planTests([file]).promtool).toBe(true);
    expect(planTests(['test/scripts/test-plan.test.ts']).promtool).toBe(false);
  });
});

describe('npm run test:unit', () => {
  const config = ['--config', 'vitest.unit.config.ts'];

  it('needs no Redis and no browser, runs no other checks, and accepts a file too', () => {
    expect(planTests(['--unit'])).toEqual({
      checks: false,
      stores: false,
      browser: false,
      promtool: false,
      cluster: false,
      vitest: config,
    });
    expect(planTests(['--unit', 'test/proxy']).vitest).toEqual([...config, 'test/proxy']);
  });
});

describe('npm run test:cluster', () => {
  it('runs the files that start a marketplace, except those that start their own clusters, or the requested files', () => {
    const { cluster, stores, vitest } = planTests(['--cluster']);
    expect({ cluster, stores }).toEqual({ cluster: true, stores: true });
    expect(vitest).toContain('test/integration/billing.test.ts');
    expect(vitest).toContain('test/routes/site.test.ts');
    expect(vitest).not.toContain('test/integration/redis-cluster.test.ts');
    expect(vitest).not.toContain('test/admission/admission.test.ts');
    expect(planTests(['--cluster', 'test/mcp']).vitest).toEqual(['test/mcp']);
  });
});
