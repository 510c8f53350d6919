import fc from 'fast-check';
import { expect, it } from 'vitest';
import type { Listing } from '../../../src/catalog/listing.ts';
import { Snapshot } from '../../../src/catalog/snapshot.ts';
import { makeListing } from '../../support/listings.ts';

const idOf = (n: number): string => `00000000-0000-7000-8000-00000000000${n}`;

it('a snapshot has the active listings of each provider, whatever was put before', () => {
  const change = fc.record({
    id: fc.nat(5).map(idOf),
    providerId: fc.nat(2).map(idOf),
    status: fc.constantFrom('active', 'paused', 'removed'),
    isSuspended: fc.boolean(),
    updatedAtMicros: fc.nat(20),
  });
  fc.assert(
    fc.property(fc.array(change), (changes) => {
      const snapshot = new Snapshot();
      for (const fields of changes) snapshot.put(makeListing(fields as Partial<Listing>));
      for (const providerId of [0, 1, 2].map(idOf)) {
        const active = [...snapshot.values()].filter((of) => of.providerId === providerId && of.status === 'active');
        expect([...snapshot.activeOf(providerId)].sort()).toEqual(active.map(({ id }) => id).sort());
      }
    }),
  );
});
