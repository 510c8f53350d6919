import { ONE_LINE } from '../platform/schemas.ts';
import { DRAIN_SECONDS } from '../shared.mjs';
import type { Setting } from './read-settings.ts';

/** The largest rate limit that MAX_RATE_LIMIT, and the database, may have. */
export const LARGEST_RATE_LIMIT = 1_000_000;

/**
 * All settings: the JSON Schema of each environment variable. Names carry their unit. A test compares the table in
 * docs/operating.md with these defaults and descriptions. A constant that no operator needs to change is not here, but beside the
 * code that uses it.
 *
 * Tested by test/config/config.test.ts.
 */
export const SETTINGS = {
  DATABASE_URL: { type: 'string', pattern: '^postgres(ql)?://', description: 'URL of Postgres, the system of record' },
  REDIS_URL: {
    type: 'string',
    // A URL with a query is refused, because its options would be ignored.
    pattern: '^rediss?(\\+cluster)?://[^?#]+$',
    description:
      'URL of Redis, which must have `maxmemory-policy noeviction`: `redis[s]://[[user]:password@]host[:port][/database]`; of a Redis Cluster: `redis[s]+cluster://[user:password@]host:port,host:port,…`',
  },
  HOST: { type: 'string', default: '0.0.0.0', description: 'address on which the public port listens' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 8080, description: 'public port' },
  WORKERS: {
    type: 'string',
    default: '1',
    description: 'number of gateway processes that share the port; `auto` means one per CPU',
  },
  ONE_PROCESS: {
    type: 'string',
    enum: ['on', 'off'],
    default: 'off',
    description:
      '`on`: gateway and writer share one process, which saves about 130 MB, but calls wait during each flush',
  },
  WEB: {
    type: 'string',
    enum: ['on', 'off'],
    default: 'on',
    description: '`off`: no catalog at `/` and no console; `/` is a small page then',
  },
  METRICS_PORT: {
    type: 'integer',
    minimum: 0,
    maximum: 65_535,
    default: 9464,
    description: 'port of `/metrics`; keep it private',
  },
  LOG_LEVEL: {
    type: 'string',
    enum: ['debug', 'info', 'warn', 'error', 'fatal', 'silent'],
    default: 'info',
    description: 'minimum level logged',
  },
  ACCESS_LOG: {
    type: 'string',
    enum: ['on', 'off'],
    default: 'off',
    description: '`on`: a line of log for each request, whatever `LOG_LEVEL` is; see [access log](#access-log)',
  },
  ADMIN_BOOTSTRAP_TOKEN: {
    type: 'string',
    minLength: 16,
    description: 'if set, `POST /keys` with `role: admin` must send it in `X-Admin-Bootstrap`',
  },
  ALLOWED_ORIGINS: {
    type: 'string',
    default: '',
    description:
      'comma-separated origins, such as `https://app.example.com`, whose web pages may use `/mcp`; its own pages always may',
  },
  UPSTREAM_ALLOW_CIDRS: {
    type: 'string',
    default: '',
    description: 'comma-separated address ranges, beyond the public internet, in which services may live',
  },
  SECRETS_KEY: {
    type: 'string',
    default: '',
    description:
      'comma-separated keys for the secrets of listings (`upstream_headers`, `upstream_query`, `signed`), each base64 of 32 bytes: the first encrypts, all decrypt; without one listings cannot have secrets',
  },
  UPSTREAM_MAX_CONNECTIONS: {
    type: 'integer',
    minimum: 1,
    maximum: 100_000,
    default: 512,
    description:
      'maximum connections of a worker for one listing; further calls wait up to a second, then get `upstream_busy`',
  },
  UPSTREAM_MAX_TOTAL_CONNECTIONS: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    default: 8192,
    description:
      'maximum connections of a worker for all listings together; at most half of the files that it may open, and at least `UPSTREAM_MAX_CONNECTIONS`',
  },
  MAX_REQUEST_BODY_BYTES: {
    type: 'integer',
    minimum: 0,
    maximum: 1_073_741_824,
    default: 10_485_760,
    description: 'maximum size of the request body of a call',
  },
  IDLE_BODY_SECONDS: {
    type: 'integer',
    minimum: 1,
    maximum: 86_400,
    default: 300,
    description:
      'maximum silence of a service within a response body, unless its listing has `idle_seconds`; then the response is cut off and the call refunded',
  },
  ANONYMOUS_RATE_LIMIT: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    default: 60,
    description: 'requests per minute that one address may make without a key',
  },
  MAX_RATE_LIMIT: {
    type: 'integer',
    // New keys get DEFAULT_RATE_LIMIT.
    minimum: 60,
    maximum: LARGEST_RATE_LIMIT,
    default: 300,
    description:
      'maximum requests per minute that an admin may allow a key. A key that had more has this much once a gateway loads it again; the same for all gateways',
  },
  MAX_LISTINGS_PER_ACCOUNT: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    default: 200,
    description: 'maximum listings of an account; a removed listing counts until a day after it was listed',
  },
  MAX_ACCOUNTS_PER_ADDRESS: {
    type: 'integer',
    minimum: 0,
    maximum: 1_000_000,
    default: 20,
    description:
      'maximum accounts that one public address may open in a day (UTC) without a key; `0`: no limit. Loopback and private addresses have none',
  },
  SESSION_DAYS: {
    type: 'integer',
    minimum: 1,
    maximum: 400,
    default: 14,
    description: 'days for which a browser stays signed in; with the key of an admin it is always 12 hours',
  },
  TRUSTED_PROXY_HOPS: {
    type: 'integer',
    minimum: 0,
    maximum: 10,
    default: 0,
    description: 'number of proxies in front of the gateway whose `X-Forwarded-For` is trusted',
  },
  PLATFORM_FEE_BASIS_POINTS: {
    type: 'integer',
    minimum: 0,
    maximum: 10_000,
    default: 1000,
    description: "the platform's share of each charge, in 1/100 of a percent",
  },
  PRICE_NOTICE_SECONDS: {
    type: 'integer',
    minimum: 0,
    maximum: 31_536_000,
    default: 86_400,
    description:
      'how long a listing announces a change after which a call may cost more, before it counts; `0`: it counts at once',
  },
  REDIS_COMMAND_TIMEOUT_MS: {
    type: 'integer',
    minimum: 10,
    maximum: 20_000,
    default: 500,
    description:
      'how long Redis may take to answer a command of any process; a call not admitted by then gets 503 and is cancelled by id',
  },
  REDIS_WAIT_REPLICAS: {
    type: 'integer',
    minimum: 0,
    maximum: 5,
    default: 0,
    description:
      'how many replicas of its Redis must have an admission or a settlement before it counts; with fewer, calls get 503',
  },
  REDIS_SHARDS: {
    type: 'integer',
    minimum: 1,
    maximum: 1024,
    default: 16,
    description: 'number of shards of the data in Redis; fixed for the life of an installation',
  },
  INSTANCE_LEASE_SECONDS: {
    type: 'integer',
    // With a smaller value, a living gateway's lease could run out while Redis is silent for as long as the sweep tolerates
    // (LONGEST_GAP).
    minimum: 10,
    maximum: 3600,
    default: 15,
    description: 'a gateway that is silent for this long counts as dead, and its open calls are refunded',
  },
  MAX_BACKLOG_EVENTS: {
    type: 'integer',
    minimum: 1000,
    maximum: 1_000_000_000,
    default: 5_000_000,
    description:
      'maximum usage events waiting for Postgres; beyond it new calls are refused (each event takes about 260 bytes in Redis, more with a long path)',
  },
  REPLAY_MAX_BYTES: {
    type: 'integer',
    minimum: 0,
    maximum: 524_288,
    default: 32_768,
    description:
      'maximum size of the body of an answer that is kept in Redis for repeats with the same `Idempotency-Key`; `0`: none is kept',
  },
  REPLAY_BYTES: {
    type: 'integer',
    minimum: 0,
    maximum: 1_099_511_627_776,
    default: 268_435_456,
    description:
      'maximum size of all these answers together, in equal parts for the shards; beyond it, and while Redis uses more than 70 % of its `maxmemory`, none is kept',
  },
  TOP_UP_URL: {
    type: 'string',
    maxLength: 2_048,
    description:
      'http or https URL of a page where buyers can add money; `insufficient_balance` and `GET /balance/me` name it in `top_up`, with the `account_id` in its query',
  },
  OPERATOR_NAME: {
    type: 'string',
    maxLength: 100,
    pattern: ONE_LINE,
    description:
      'who runs this gateway: shown in `insufficient_balance`, on the pages, in `/`, `/llms.txt` and the OpenAPI document',
  },
  OPERATOR_CONTACT: {
    type: 'string',
    maxLength: 200,
    description: 'e-mail address, or http or https URL, at which the operator can be reached; shown with the name',
  },
  TERMS_URL: {
    type: 'string',
    maxLength: 2_048,
    description: 'http or https URL of the terms of this gateway; shown with the name',
  },
  USAGE_RETENTION_DAYS: {
    type: 'integer',
    minimum: 0,
    maximum: 36_500,
    default: 400,
    description:
      'how many days before today (UTC) calls are kept one by one, at least 30; then their day is dropped once 30 newer days have calls, while sums, statements and journal stay; `0`: for ever',
  },
  EXPORT_DIR: {
    type: 'string',
    maxLength: 4_096,
    description:
      'folder into which the writer writes the calls of a day before it drops them (gzip NDJSON and a manifest); unset: they are dropped without an export. The same for all writers',
  },
  DRAIN_SECONDS: {
    type: 'integer',
    minimum: 0,
    maximum: 3600,
    default: DRAIN_SECONDS,
    description: 'how long calls under way may take to finish after SIGTERM; then they are cut off and refunded',
  },
} as const satisfies Record<string, Setting>;
