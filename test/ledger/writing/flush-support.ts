import { afterAll, beforeAll } from 'vitest';
import { storeEntries, storeNewCalls } from '../../../src/ledger/writing/flush.ts';
import { ReadOver } from '../../../src/ledger/writing/read-over.ts';
import { type Batch, readAgain, readBatch, type StreamSource } from '../../../src/ledger/writing/stream.ts';
import { PostgresSession } from '../../../src/platform/postgres.ts';
import { FEE_BASIS_POINTS } from '../support.ts';
import { ledger, useLedger } from '../use-ledger.ts';

export { ledger };

/** The session with which the test file that has called `useFlush` stores batches itself. */
export let session: PostgresSession;

/** Opens a ledger as `useLedger` does, and the session. */
export function useFlush(): void {
  useLedger();
  beforeAll(() => {
    session = new PostgresSession({ url: ledger.databaseUrl, applicationName: 'test' });
  });
  afterAll(() => session.close());
}

const source = (): StreamSource => ({
  redis: ledger.store.redis,
  keys: ledger.store.keys,
  readOver: new ReadOver(),
  feeBasisPoints: FEE_BASIS_POINTS,
});

/** All events that wait, up to 10 000. */
export function readAll(): Promise<Batch> {
  const shards = ledger.store.keys.usage.map((_, shard) => shard);
  return readBatch(source(), shards, 10_000, null);
}

/** The two ways to store a batch in a transaction of the session: plain, by COPY, and careful, by INSERT. */
export async function storeFast(batch: Batch): Promise<void> {
  await storeNewCalls(session, batch.pages);
}

export async function storeWithCare(batch: Batch): Promise<void> {
  await storeEntries(session, await readAgain(source(), batch), FEE_BASIS_POINTS);
}
