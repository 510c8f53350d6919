import { afterAll, beforeAll } from 'vitest';
import type { Sql } from '../../src/platform/postgres.ts';
import { openTestDatabase } from './accounts.ts';

/** A pool of the database of the test file that has called `useDatabase`. */
export let sql: Sql;
/** Where that database is, for a test that opens a pool of its own. */
export let url: string;

/** A migrated database for all tests of a file. It is there before the file's own `beforeAll`, and goes after its `afterAll`. */
export function useDatabase(): void {
  let close: () => Promise<void>;
  beforeAll(async () => {
    ({ sql, url, close } = await openTestDatabase());
  });
  afterAll(() => close());
}
