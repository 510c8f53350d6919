import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/**
 * Files that take about 15 s or more, in the order in which they are begun. Where no durations are known, as in a fresh clone, Vitest begins
 * with the largest files: some of these would be among the last then, and run alone at the end. Files that compute stand between
 * files that mostly wait, so that not all workers compute at the same time: then every timer is late.
 */
const SLOW = [
  'test/integration/workers-lifecycle.test.ts',
  'test/http/early-answers.test.ts',
  'test/integration/stores-away.test.ts',
  'test/model/model.test.ts',
  'test/integration/installations.test.ts',
  'test/ledger/writing/event-wait.test.ts',
  'test/fault/fault.test.ts',
  'test/web/provider.test.ts',
  'test/admission/model.test.ts',
  'test/traffic/traffic.test.ts',
  'test/conformance/callers.test.ts',
  'test/integration/budgets.test.ts',
  'test/catalog/discovery/size.test.ts',
  'test/integration/single-process.test.ts',
  'test/scripts/ready.test.ts',
  'test/integration/patience.test.ts',
  'test/openapi/contract.test.ts',
  'test/web/service.test.ts',
  'test/ledger/writing/writer-crash.test.ts',
  'test/http/slow-callers.test.ts',
  'test/web/buyer.test.ts',
  'test/integration/service-failures.test.ts',
  'test/model/checks.test.ts',
  'test/admission/admission.test.ts',
  'test/integration/price-notice.test.ts',
  'test/ledger/wallets/hydrate.test.ts',
  'test/web/admin.test.ts',
  'test/integration/redis-away.test.ts',
  'test/fault/synchronous-commit.test.ts',
  'test/web/catalog.test.ts',
  'test/ledger/reconcile/restart.test.ts',
  'test/scripts/start.test.ts',
  'test/integration/redis-cluster.test.ts',
  'test/clients/clients.test.ts',
  'test/ledger/writing/several-writers.test.ts',
  'test/fault/cluster.test.ts',
  'test/ledger/sweep/sweeper.test.ts',
  'test/http/caller-stream.test.ts',
  'test/ledger/writing/writer.test.ts',
  'test/ledger/rollups/rebuild.test.ts',
  'test/ledger/writing/versions.test.ts',
  'test/integration/child-keys.test.ts',
  'test/ledger/reconcile/reconciler.test.ts',
  'test/fault/redis-durability.test.ts',
  'test/ledger/writing/flush.test.ts',
  'test/roles/reshard.test.ts',
  'test/fault/history.test.ts',
  'test/integration/priced-by-use.test.ts',
  'test/roles/writer.test.ts',
  'test/integration/billing.test.ts',
  'test/integration/caller-gone.test.ts',
  'test/web/service-snippets.test.ts',
  'test/bench/proc.test.ts',
  'test/integration/who-sees-what.test.ts',
  'test/integration/cluster-replicas.test.ts',
  'test/catalog/openapi-import/real-documents.test.ts',
  'test/integration/mcp-tools.test.ts',
  'test/accounts/refunds/books.test.ts',
  'test/accounts/partitions.test.ts',
  'test/conformance/services.test.ts',
];

class SlowFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const place = ({ moduleId }: TestSpecification): number => {
      const at = SLOW.findIndex((file) => moduleId.endsWith(file));
      return at === -1 ? SLOW.length : at;
    };
    return sorted.toSorted((a, b) => place(a) - place(b));
  }
}

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: ['test/global-setup.ts'],
    // What must succeed may take long on a busy machine. A test that fails waits 60 s in vain (`until`).
    testTimeout: 180_000,
    hookTimeout: 240_000,
    pool: 'forks',
    // What a test makes lives for a moment. In a small young generation V8 would copy much of it: a twentieth of a worker's CPU.
    execArgv: ['--min-semi-space-size=16', '--max-semi-space-size=32'],
    // The files of one worker share its modules. Loading them anew for each file took a quarter of the suite's time. So a test file
    // must not change a module that another one uses.
    isolate: false,
    // For two cores. A file waits for timers and processes two thirds of its time, so six files keep two cores busy. Every file
    // has its own servers on free ports.
    maxWorkers: 6,
    sequence: { sequencer: SlowFirst },
  },
});
