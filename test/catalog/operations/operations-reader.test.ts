import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import type { Listing } from '../../../src/catalog/listing.ts';
import { OperationsReader } from '../../../src/catalog/operations/operations-reader.ts';
import type { Sql } from '../../../src/platform/postgres.ts';

/** Operations of nearly as many characters as there may be, and of as many objects as fit. */
const TEXT = `[{"method":"GET","path":"/","summary":"x","output":{"a":[${'{},'.repeat(85_000)}{}]}}]`;

/** As long, and quickly parsed. */
const QUICK_TEXT = `[{"method":"GET","path":"/","summary":"${'x'.repeat(TEXT.length - 40)}"}]`;

let text = TEXT;
let queries = 0;
const sql = (async () => {
  queries++;
  // A string of its own for each listing, as it comes from Postgres.
  return [{ operations: Buffer.from(text).toString('latin1') }];
}) as unknown as Sql;

const listing = (n: number, updatedAtMicros = 1): Listing =>
  ({ id: `listing-${n}`, operationTerms: '[["GET","/",null,null]]', updatedAtMicros }) as Listing;

function heapMb(): number {
  setFlagsFromString('--expose-gc');
  (runInNewContext('gc') as () => void)();
  return process.memoryUsage().heapUsed / 1e6;
}

it('operations that anybody may request take bounded memory, however they are made', async () => {
  const reader = new OperationsReader(sql);
  const before = heapMb();
  for (let n = 0; n < 200; n++) await reader.read(listing(n));
  // 34 MB of text. As objects it would be 1 100 MB.
  expect(heapMb() - before).toBeLessThan(60);
  expect(await reader.read(listing(199))).toHaveLength(1);
});

it('operations are read once per version of a listing, and those used least recently are dropped', async () => {
  const reader = new OperationsReader(sql);
  [queries, text] = [0, QUICK_TEXT];
  for (let n = 0; n < 140; n++) {
    await reader.read(listing(0));
    await reader.read(listing(n));
  }
  expect(queries).toBe(140);
  await reader.read(listing(0));
  await reader.read(listing(139));
  expect(queries).toBe(140);
  await reader.read(listing(1));
  await reader.read(listing(0, 2));
  expect(queries).toBe(142);
});
