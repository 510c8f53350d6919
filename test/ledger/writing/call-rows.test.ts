import { expect, it } from 'vitest';
import type { UsageEvent } from '../../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../../src/platform/ids.ts';
import { newEvent } from '../support.ts';
import { ledger, readAll, session, storeFast, storeWithCare, useFlush } from './flush-support.ts';

useFlush();

const LARGEST = Number.MAX_SAFE_INTEGER;

/** The columns of a call. Their values must be equal whether COPY or INSERT stored the call. */
async function storedBothWays(events: readonly UsageEvent[]): Promise<[unknown, unknown]> {
  const books: unknown[] = [];
  for (const store of [storeFast, storeWithCare]) {
    await ledger.clear();
    await ledger.append(...events);
    const batch = await readAll();
    await session.transaction(() => store(batch));
    books.push(await ledger.readBooks());
  }
  return [books[0], books[1]];
}

it('COPY and INSERT store a call in the same way', async () => {
  const [copied, inserted] = await storedBothWays([
    newEvent(),
    newEvent({
      heldMicros: LARGEST,
      latencyUs: LARGEST,
      requestBytes: LARGEST,
      responseBytes: LARGEST,
      status: 32_767,
    }),
    newEvent({ heldMicros: 0, freeTier: true, status: 0, latencyUs: 0 }),
    newEvent({ heldMicros: 4_294_967_296, latencyUs: 4_294_967_295 }),
    newEvent({ outcome: 'refunded:upstream_timeout' }),
    newEvent({ outcome: 'abandoned' }),
    newEvent({ path: '' }),
    newEvent({ path: `/ü/字/😀/"\\{},NULL`, method: '"', keyId: 'é' }),
    newEvent({ path: '/\ud800' }),
    // Longer than a chunk in bytes, but not in letters.
    newEvent({ path: `/${'字'.repeat(40_000)}` }),
    newEvent({ path: `/${'x'.repeat(70_000)}` }),
    // Before Postgres' epoch, and long after it: ids may contain any time.
    newEvent({ usageId: uuidv7(0), admittedAtMs: 0 }),
    newEvent({ usageId: uuidv7(281_474_976_710_655), admittedAtMs: 7_000_000_000_123 }),
    newEvent({ admittedAtMs: 946_684_799_999 }),
  ]);
  expect(copied).toEqual(inserted);
});
