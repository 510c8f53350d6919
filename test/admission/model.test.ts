import fc from 'fast-check';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { QUIET, Store } from '../support/store.ts';
import { LEASE_MS } from './model.ts';
import { Run } from './model-run.ts';
import { damageStep, quota, step } from './model-steps.ts';

let store: Store;
let sweeper: Sweeper;
beforeAll(async () => {
  store = await Store.open();
  sweeper = new Sweeper({
    redis: store.redis,
    keys: store.keys,
    leaseSeconds: LEASE_MS / 1000,
    isReconciled: () => true,
    log: QUIET,
  });
});
afterAll(() => store.close());

it('in any sequence of steps, Redis does what the model says, and no money is made or lost', async () => {
  let admitted = 0;
  let swept = 0;
  let keptOut = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), quota, async (steps, freeCalls) => {
      await store.command('flushall');
      const run = new Run(store, sweeper, freeCalls);
      await run.start();
      for (const one of steps) {
        await run.take(one);
        await run.compare();
      }
      await run.finish();
      admitted += run.totals.admitted;
      swept += run.totals.swept;
      keptOut += run.totals.keptOut;
    }),
    { numRuns: 70 },
  );
  // Makes sure that the sequences reach the cases they are meant to test.
  expect(admitted).toBeGreaterThan(300);
  expect(swept).toBeGreaterThan(30);
  expect(keptOut).toBeGreaterThan(100);
});

it('whatever data of one account is damaged, other accounts behave as the model says, and no command is half done', async () => {
  let damaged = 0;
  let unchanged = 0;
  const steps = fc.array(fc.oneof({ weight: 4, arbitrary: step }, { weight: 1, arbitrary: damageStep }), {
    minLength: 20,
    maxLength: 60,
  });
  await fc.assert(
    fc.asyncProperty(steps, quota, async (sequence, freeCalls) => {
      await store.command('flushall');
      const run = new Run(store, sweeper, freeCalls);
      await run.start();
      for (const one of sequence) {
        await run.take(one);
        await run.compare();
      }
      await run.finish();
      damaged += run.totals.damaged;
      unchanged += run.totals.unchanged;
    }),
    { numRuns: 80, seed: 20_261_122 },
  );
  expect(damaged).toBeGreaterThan(60);
  expect(unchanged).toBeGreaterThan(300);
});
