import { CALLABLE, FOUND, OPTIONAL, VIEWS } from '../catalog/listing-fields.ts';
import { OPERATION_EXAMPLE, PRICED_OPERATION } from '../catalog/listing-schemas.ts';
import { READY_CALL } from '../catalog/ready-call.ts';
import type { FromSchema } from '../http/route.ts';
import { COUNT, list, record } from '../openapi/schemas.ts';
import { RECENT_STATS } from './stats.ts';

export const LANG = {
  type: 'string',
  maxLength: 35,
  description: 'Language of the labels; overrides Accept-Language',
} as const;
export const LANG_QUERY = { type: 'object', additionalProperties: false, properties: { lang: LANG } } as const;
export type LangQuery = FromSchema<typeof LANG_QUERY>;

export const LISTED_SERVICE = record('ListedService', FOUND.schemas, {
  optional: OPTIONAL,
  description: 'A service as a search shows it. Its description is cut after 200 characters',
});

export const CALLABLE_SERVICE = record(
  'CallableService',
  {
    ...CALLABLE.schemas,
    call: READY_CALL,
    operations: list(PRICED_OPERATION, 'How to call it; empty if that is not stated'),
    stats: RECENT_STATS,
    free_calls_left: {
      ...COUNT,
      description:
        'With the key of a buyer: how many free calls the account has left. Absent without a key, if calls with this key take none, and while it cannot be read',
    },
  },
  {
    optional: [...OPTIONAL.filter((name) => name !== 'operations'), 'stats', 'free_calls_left'],
    description: 'A service as an agent needs it to make a call',
  },
);
export const CALLABLE_SERVICE_EXAMPLE = {
  ...CALLABLE.example,
  call: {
    method: 'POST',
    url: `https://gateway.example${CALLABLE.example.proxy_path}translate`,
    headers: {
      Authorization: 'Bearer {key_id}:{secret}',
      'X-ACF-Max-Amount': '0.002',
      'Content-Type': 'application/json',
    },
    body: OPERATION_EXAMPLE.example.body,
  },
  operations: [{ ...OPERATION_EXAMPLE, price_label: '$0.002 per call' }],
  stats: {
    calls: 120,
    success_rate: 0.9829,
    latency_ms: { p50: 18.9, p95: 47, p99: 98 },
    price_charged: { median: 0.002, p95: 0.002, at_cap: null },
  },
  free_calls_left: 99,
};

export const SERVICE = record('Service', VIEWS.owner.schemas, { optional: OPTIONAL });
export const SERVICE_EXAMPLE = VIEWS.owner.example;
/** A listing as operators see it in their list. */
export const SERVICE_OF_ANYBODY = record('ServiceOfAnybody', VIEWS.admin.schemas, { optional: OPTIONAL });
