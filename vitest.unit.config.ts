import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { unitTestFiles } from './test/support/unit-files.ts';

/** `npm run test:unit`: the tests that start no servers, and so need neither Postgres nor Redis. */
export default defineConfig({
  test: {
    include: unitTestFiles(fileURLToPath(new URL('.', import.meta.url))),
    setupFiles: ['test/support/unit-guard.ts'],
    pool: 'forks',
    // These files share modules but no state: half the time of a process for each.
    isolate: false,
    // As in vitest.config.ts. What a set-up that gave up leaves running would also stop the next files of its process.
    testTimeout: 180_000,
    hookTimeout: 240_000,
    maxWorkers: 2,
  },
});
