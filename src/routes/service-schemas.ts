import { EXAMPLE, list, record, TEXT, TIME, UUID, usd } from '../openapi/schemas.ts';
import { RECENT_STATS } from './stats.ts';

// What src/catalog/present.ts writes: shared by the routes that show services.

const OPERATION_PRICE = record(
  'OperationPrice',
  { method: TEXT, path: TEXT, tool: TEXT, price: usd('Price of such a call') },
  { optional: ['method', 'path', 'tool'], description: 'With method and path, or with the tool of an MCP server' },
);
const NEXT_PRICE = record(
  'NextPrice',
  {
    price: usd('Price of a call from then on'),
    from: TIME,
    free_calls: { type: 'integer', minimum: 0, description: 'From then on, if it changes' },
    only_operations: { type: 'boolean', description: 'From then on, if it changes' },
    operations: list(OPERATION_PRICE, 'All operations from then on, if they change; absent in lists'),
  },
  {
    optional: ['free_calls', 'only_operations', 'operations'],
    description: 'What calls cost from a time on, if a call may cost more then; absent if nothing is announced',
  },
);

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
  quality_trend: {
    type: 'number',
    minimum: -100,
    maximum: 100,
    description: 'The quality less that of seven days before; absent when too little was known then',
  },
  rated: {
    type: 'boolean',
    description: 'Whether calls went into the quality. What nobody has called yet is not rated, and has 50',
  },
  proxy_path: { type: 'string', description: 'Calls go to this path, and below it' },
  next_price: NEXT_PRICE,
};
const UPTIME = record(
  'Uptime',
  {
    last_24_hours: { type: 'number', minimum: 0, maximum: 100 },
    last_30_days: { type: 'number', minimum: 0, maximum: 100 },
  },
  {
    optional: ['last_24_hours'],
    description: 'Percent of health checks that the service answered well; absent if it is not asked',
  },
);
const LINKS = { uptime: UPTIME, docs_url: { type: 'string', description: 'A page about the service, for people' } };
const MANNER = {
  protocol: { type: 'string', enum: ['http', 'mcp'] },
  timeout_seconds: { type: 'integer', minimum: 1, description: 'How long a call may wait for the response head' },
  idle_seconds: { type: 'integer', minimum: 1, description: 'The longest silence within a response, if it is set' },
  only_operations: { type: 'boolean', description: 'Calls that match no operation are refused' },
  forward_headers: list(TEXT, 'Credential headers that the service asks callers for, if any; see X-ACF-Forward'),
};
const OPERATION_FIELDS = {
  method: { type: 'string', description: 'GET also stands for HEAD' },
  path: { type: 'string', description: 'What follows the service id: segments, {name} for one, a last * for the rest' },
  tool: { type: 'string', description: 'Of an MCP server, in place of method and path' },
  summary: TEXT,
  price: usd("Price of such a call, if it is not the listing's"),
  input: { type: 'object', additionalProperties: true, description: 'JSON Schema of the request; not enforced' },
  output: { type: 'object', additionalProperties: true, description: 'JSON Schema of the response; not enforced' },
  example: {
    type: 'object',
    description: 'One request and its response',
    properties: { query: { type: 'object', additionalProperties: true }, body: {}, response: {} },
  },
};
const NOT_ALWAYS = ['method', 'path', 'tool', 'summary', 'input', 'output', 'example'];
const OPERATION = record('Operation', OPERATION_FIELDS, { optional: [...NOT_ALWAYS, 'price'] });
const PRICED_OPERATION = record(
  'PricedOperation',
  { ...OPERATION_FIELDS, price: usd('Price of such a call'), price_label: TEXT },
  { optional: NOT_ALWAYS },
);
const MAYBE = ['free_calls', 'free_calls_label', 'quality_trend', 'next_price'];
const NOT_SET = [...MAYBE, ...Object.keys(LINKS), 'idle_seconds', 'forward_headers'];

/** Shown to keys of the provider's account and to admins only. */
const PROVISION = {
  endpoint: { type: 'string', description: "Shown to keys of its provider's account and to admins only" },
  health_path: { type: 'string', description: 'Asked every minute; shown to the same' },
  reachable: {
    type: 'boolean',
    description: 'Whether a new endpoint answered when it was asked once; shown to the same',
  },
  checked_at: { ...TIME, description: 'When it was asked; shown to the same' },
  upstream_headers: list(TEXT, 'Names of the headers that the gateway adds to calls; shown to the same'),
  signed: { type: 'boolean', description: 'Whether calls are signed; shown to the same' },
  signing_keyid: { type: 'string', description: 'The keyid of signatures by the present secret' },
  price_notice_seconds: {
    type: 'integer',
    minimum: 0,
    description: 'How long a change is announced after which a call may cost more; shown to the same, absent in lists',
  },
  announced_operations: list(
    OPERATION,
    'The operations of next_price as the provider wrote them, if these change; shown to the same, absent in lists',
  ),
  signing_secret: { type: 'string', description: 'Only in the response to the request that made it' },
  forgotten_upstream_headers: list(TEXT, 'Only in the response to a change of the endpoint that removed these headers'),
};

export const LISTED_SERVICE = record('ListedService', LISTED, {
  optional: MAYBE,
  description: 'A service as a search shows it. Its description is cut after 200 characters',
});

export const CALLABLE_SERVICE = record(
  'CallableService',
  {
    ...LISTED,
    ...LINKS,
    ...MANNER,
    operations: list(PRICED_OPERATION, 'How to call it; empty if that is not told'),
    stats: RECENT_STATS,
  },
  { optional: [...NOT_SET, 'stats'], description: 'A service as an agent needs it to make a call' },
);

const SERVICE_FIELDS = {
  ...LISTED,
  ...LINKS,
  status: { type: 'string', enum: ['active', 'paused', 'removed'] },
  ...MANNER,
  operations: list(OPERATION, 'As the provider wrote them; absent in lists'),
  provider_id: UUID,
  ...PROVISION,
  created_at: TIME,
  updated_at: TIME,
};
const SERVICE_OPTIONS = { optional: [...NOT_SET, 'operations', ...Object.keys(PROVISION)] };

export const SERVICE = record('Service', SERVICE_FIELDS, SERVICE_OPTIONS);

/** As operators see it in their list. */
export const SERVICE_OF_ANYBODY = record(
  'ServiceOfAnybody',
  { ...SERVICE_FIELDS, provider_owner_id: { ...TEXT, description: "The label of the provider's account" } },
  SERVICE_OPTIONS,
);

export const SERVICE_EXAMPLE = {
  ...{ id: EXAMPLE.serviceId, name: 'Translate', description: 'Translates text into 30 languages.', price: 0.002 },
  ...{ price_label: '$0.002 per call', free_calls: 100, free_calls_label: '100 free calls', category: 'language' },
  ...{ quality: 50, rated: false, proxy_path: `/api/v1/proxy/${EXAMPLE.serviceId}/` },
};

const OPERATION_EXAMPLE = {
  ...{ method: 'POST', path: '/translate', summary: 'Translates a text', price: 0.002 },
  input: { type: 'object', required: ['text', 'to'] },
  output: { type: 'object' },
  example: { body: { text: 'hello', to: 'fr' }, response: { text: 'bonjour' } },
};
const MANNER_EXAMPLE = { protocol: 'http', timeout_seconds: 60, only_operations: false };

export const CALLABLE_SERVICE_EXAMPLE = {
  ...SERVICE_EXAMPLE,
  ...MANNER_EXAMPLE,
  operations: [{ ...OPERATION_EXAMPLE, price_label: '$0.002 per call' }],
  stats: {
    ...{ calls: 120, success_rate: 0.9829, latency_ms: { p50: 18.9, p95: 47, p99: 98 } },
    price_charged: { median: 0.002, p95: 0.002 },
  },
};

export const SERVICE_DETAILS_EXAMPLE = {
  ...SERVICE_EXAMPLE,
  ...MANNER_EXAMPLE,
  ...{ operations: [OPERATION_EXAMPLE], status: 'active', provider_id: EXAMPLE.providerId },
  ...{
    endpoint: 'https://translate.example.com/v1',
    upstream_headers: ['x-api-key'],
    signed: false,
    created_at: EXAMPLE.time,
    updated_at: EXAMPLE.time,
  },
};
