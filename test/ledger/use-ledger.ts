import { afterAll, afterEach, beforeAll, beforeEach } from 'vitest';
import { Ledger } from './support.ts';

/** Of the test file that has called `useLedger`. */
export let ledger: Ledger;

/** A ledger for all tests of a file, empty at the begin of each; its writers end with the test. */
export function useLedger(): void {
  beforeAll(async () => {
    ledger = await Ledger.open();
  });
  afterAll(() => ledger.close());
  beforeEach(() => ledger.clear());
  afterEach(() => ledger.stopWriters());
}
