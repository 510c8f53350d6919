import { defineConfig } from 'vitest/config';

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
  },
});
