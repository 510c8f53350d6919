import type { Listing } from '../../src/catalog/listing.ts';
import { uuidv7 } from '../../src/platform/ids.ts';

/** A listing with the given fields; the rest is ordinary. */
export function makeListing(fields: Partial<Listing> = {}): Listing {
  return {
    id: uuidv7(),
    providerId: '00000000-0000-7000-8000-000000000001',
    name: 'Weather',
    description: 'Forecasts for every place',
    endpoint: 'http://service.example/api',
    priceMicros: 2_000,
    freeCalls: 0,
    category: 'data',
    timeoutSeconds: 60,
    status: 'active',
    quality: 50,
    createdAtMs: 1_760_000_000_000,
    updatedAtMicros: 1_760_000_000_000_000,
    ...fields,
  };
}

export const LISTING_FIELDS = {
  name: 'Weather',
  description: 'Forecasts for every place',
  endpoint: 'http://service.example/api',
  priceMicros: 2_000,
  freeCalls: 0,
  category: 'data',
  timeoutSeconds: 60,
} as const;
