import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { Ledger } from './support.ts';

/** The ledger of the test file that has called `useLedger`. */
export let ledger: Ledger;

/** Opens a ledger for all tests of a file. It is emptied before each test, and its writers stop after each test. */
export function useLedger(): void {
  beforeAll(async () => {
    ledger = await Ledger.open();
  });
  afterAll(() => ledger.close());
  beforeEach(() => ledger.clear());
  afterEach(() => ledger.stopWriters());
}
