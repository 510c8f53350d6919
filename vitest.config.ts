import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Small files that take 20 s or more. Where no durations are known, as in a fresh clone, Vitest begins with the largest files. One of
 * these would be among the last then, and run alone at the end.
 */
const SLOW = [
  'test/admission/model.test.ts',
  'test/fault/cluster.test.ts',
  'test/fault/fault.test.ts',
  'test/http/slow-callers.test.ts',
  'test/integration/cluster-replicas.test.ts',
  'test/integration/default-start.test.ts',
  'test/integration/patience.test.ts',
  'test/integration/redis-cluster.test.ts',
  'test/integration/who-sees-what.test.ts',
  'test/integration/workers-lifecycle.test.ts',
  'test/ledger/writing/event-wait.test.ts',
  'test/ledger/writing/several-writers.test.ts',
  'test/model/checks.test.ts',
  'test/model/model.test.ts',
  'test/scripts/ready.test.ts',
  'test/scripts/start.test.ts',
  'test/traffic/traffic.test.ts',
];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isSlow = ({ moduleId }: TestSpecification): boolean => SLOW.some((file) => moduleId.endsWith(file));
    return [...sorted.filter(isSlow), ...sorted.filter((file) => !isSlow(file))];
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'forks',
    // The files of one worker share its modules. Loading them anew for each file took a quarter of the suite's time. So a test file
    // must not change a module that another one uses.
    isolate: false,
    // For two cores. A file waits for timers and processes about half of its time, so four files keep two cores busy. Every file
    // starts its own servers on free ports.
    maxWorkers: 4,
    sequence: { sequencer: SlowFirst },
  },
});
