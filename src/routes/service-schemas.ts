import { EXAMPLE, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';

// What src/catalog/present.ts writes: shared by the routes that show services.

const LISTED = {
  id: UUID,
  name: TEXT,
  description: TEXT,
  price: usd('Price of a call'),
  price_label: TEXT,
  free_calls: { type: 'integer', minimum: 1, description: 'Per buyer account; absent when there are none' },
  free_calls_label: TEXT,
  category: TEXT,
  quality: { type: 'number', minimum: 0, maximum: 100 },
  proxy_path: { type: 'string', description: 'Calls go to this path, and below it' },
};
const FREE = ['free_calls', 'free_calls_label'];

export const LISTED_SERVICE = record('ListedService', LISTED, {
  optional: FREE,
  description: 'A service as a search shows it. Its description is cut after 200 characters',
});

export const SERVICE = record(
  'Service',
  {
    ...LISTED,
    status: { type: 'string', enum: ['active', 'paused', 'removed'] },
    timeout_seconds: { type: 'integer', minimum: 1 },
    provider_id: UUID,
    endpoint: { type: 'string', description: "Shown to keys of its provider's account and to admins only" },
    created_at: TIME,
    updated_at: TIME,
  },
  { optional: [...FREE, 'endpoint'] },
);

export const SERVICE_EXAMPLE = {
  ...{ id: EXAMPLE.serviceId, name: 'Translate', description: 'Translates text into 30 languages.', price: 0.002 },
  ...{ price_label: '$0.002 per call', free_calls: 100, free_calls_label: '100 free calls', category: 'language' },
  ...{ quality: 50, proxy_path: `/api/v1/proxy/${EXAMPLE.serviceId}/` },
};

export const SERVICE_DETAILS_EXAMPLE = {
  ...SERVICE_EXAMPLE,
  ...{ status: 'active', timeout_seconds: 60, provider_id: EXAMPLE.providerId },
  ...{ endpoint: 'https://translate.example.com/v1', created_at: EXAMPLE.time, updated_at: EXAMPLE.time },
};
