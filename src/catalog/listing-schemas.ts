import { EXAMPLE, list, record, TEXT, TIME, usd } from '../platform/schemas.ts';

// The schemas of a listing's fields that are objects themselves.

const OPERATION_PRICE = record(
  'OperationPrice',
  {
    method: TEXT,
    path: TEXT,
    tool: TEXT,
    price: usd('From then on; absent if it is not an operation any more'),
    old_price: usd('Until then; absent if it is not an operation yet'),
    max_price: usd('From then on, if it has one'),
    old_max_price: usd('Until then, if it has one'),
  },
  {
    optional: ['method', 'path', 'tool', 'price', 'old_price', 'max_price', 'old_max_price'],
    description: 'With method and path, or with the tool of an MCP server',
  },
);
export const NEXT_PRICE = record(
  'NextPrice',
  {
    price: usd('Price of a call from then on'),
    old_price: usd('Price of a call until then, if it changes'),
    max_price: usd('From then on, if it changes'),
    old_max_price: usd('Until then, if it changes'),
    from: TIME,
    free_calls: { type: 'integer', minimum: 0, description: 'From then on, if it changes' },
    old_free_calls: { type: 'integer', minimum: 0, description: 'Until then, if it changes' },
    only_operations: { type: 'boolean', description: 'From then on, if it changes' },
    operations: list(
      OPERATION_PRICE,
      'The operations that are added or removed, or whose prices change; absent in lists',
    ),
  },
  {
    optional: [
      'old_price',
      'max_price',
      'old_max_price',
      'free_calls',
      'old_free_calls',
      'only_operations',
      'operations',
    ],
    description:
      'What calls cost from a time on, if a call may cost more then; absent if nothing is announced. Only what changes is listed, besides price and from',
  },
);

export const TRACK_RECORD = record(
  'TrackRecord',
  {
    calls: {
      type: 'integer',
      minimum: 1,
      description: 'Those that count in the quality, rounded down to three digits',
    },
    success_rate: { type: 'number', minimum: 0, maximum: 1, description: 'Rounded down: 1 only if all succeeded' },
    buyers: { type: 'integer', minimum: 1, description: 'Accounts that called' },
    latency_ms: { type: 'number', minimum: 0, description: 'The typical latency; absent if none is known' },
  },
  { optional: ['latency_ms'], description: 'The calls of the last 30 days; absent without calls' },
);

export const UPTIME = record(
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
export const HEALTH_FOUND = record(
  'HealthCheck',
  {
    url: { type: 'string', description: 'What is asked: the endpoint and the health path' },
    up: { type: 'boolean', description: 'Whether the last answer means that the service is up' },
    status: { type: 'integer', description: 'Of the last answer; absent if there was none' },
    reason: { ...TEXT, description: 'Why the service does not count as up' },
    asked_at: TIME,
  },
  {
    optional: ['up', 'status', 'reason', 'asked_at'],
    description:
      "How the last question by the health path ended; shown to keys of its provider's account and to admins only",
  },
);
export const PROVIDER = record(
  'Provider',
  {
    display_name: { ...TEXT, description: 'As the provider writes it. Nobody has checked it' },
    contact: { ...TEXT, description: 'Plain text' },
    url: { type: 'string', description: 'http or https URL of a page about the provider' },
    since: { ...TIME, description: 'When its account was opened' },
    services: { type: 'integer', minimum: 0, description: 'Its active listings' },
  },
  {
    optional: ['display_name', 'contact', 'url', 'since', 'services'],
    description: 'Who offers the service. Searches have only the display_name, or nothing if there is none',
  },
);
export const PROVIDER_EXAMPLE = {
  display_name: 'Translators & Co',
  contact: 'help@translate.example.com',
  url: 'https://translate.example.com/about',
  since: EXAMPLE.time,
  services: 3,
};
const OPERATION_FIELDS = {
  method: { type: 'string', description: 'GET also stands for HEAD' },
  path: { type: 'string', description: 'What follows the service id: segments, {name} for one, a last * for the rest' },
  tool: { type: 'string', description: 'Of an MCP server, instead of method and path' },
  summary: TEXT,
  price: usd("Price of such a call, if it is not the listing's"),
  max_price: usd('The highest amount that the service may report for such a call'),
  input: { type: 'object', additionalProperties: true, description: 'JSON Schema of the request; not enforced' },
  output: { type: 'object', additionalProperties: true, description: 'JSON Schema of the response; not enforced' },
  example: {
    type: 'object',
    description: 'One request and its response',
    properties: { query: { type: 'object', additionalProperties: true }, body: {}, response: {} },
  },
};
const NOT_ALWAYS = ['method', 'path', 'tool', 'summary', 'max_price', 'input', 'output', 'example'];
export const OPERATION = record('Operation', OPERATION_FIELDS, { optional: [...NOT_ALWAYS, 'price'] });
export const PRICED_OPERATION = record(
  'PricedOperation',
  { ...OPERATION_FIELDS, price: usd('Price of such a call'), price_label: TEXT },
  { optional: NOT_ALWAYS },
);

export const OPERATION_EXAMPLE = {
  method: 'POST',
  path: '/translate',
  summary: 'Translates a text',
  price: 0.002,
  input: { type: 'object', required: ['text', 'to'] },
  output: { type: 'object' },
  example: { body: { text: 'hello', to: 'fr' }, response: { text: 'bonjour' } },
};
