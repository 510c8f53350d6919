import { DRAIN_SECONDS } from '../shared.mjs';

/**
 * All settings: the JSON Schema of each environment variable. Names carry their unit. A test compares the table in the
 * documentation with these defaults and descriptions. A constant that no operator needs to change is not here, but beside the
 * code that uses it.
 *
 * Tested by test/config/config.test.ts.
 */
export const SETTINGS = {
  DATABASE_URL: { type: 'string', pattern: '^postgres(ql)?://', description: 'Postgres, the truth' },
  REDIS_URL: {
    type: 'string',
    // A URL with a query is refused, because its options would be ignored.
    pattern: '^rediss?://[^?#]+$',
    description: 'Redis, with `maxmemory-policy noeviction`: `redis[s]://[[user]:password@]host[:port][/database]`',
  },
  HOST: { type: 'string', default: '0.0.0.0', description: 'address the public port listens on' },
  PORT: { type: 'integer', minimum: 0, maximum: 65_535, default: 8080, description: 'public port' },
  WORKERS: {
    type: 'string',
    default: '1',
    description: 'gateway processes that share the port; `auto`: one for each CPU',
  },
  ONE_PROCESS: {
    type: 'string',
    enum: ['on', 'off'],
    default: 'off',
    description:
      '`on`: gateway and writer share one process, which saves about 150 MiB, but calls wait during each flush',
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
    description: 'least level that is logged',
  },
  ADMIN_BOOTSTRAP_TOKEN: {
    type: 'string',
    minLength: 16,
    description: 'when set, `POST /keys` with `role: admin` needs it in `X-Admin-Bootstrap`',
  },
  UPSTREAM_ALLOW_CIDRS: {
    type: 'string',
    default: '',
    description: 'comma-separated ranges beyond the public internet where services may live',
  },
  UPSTREAM_MAX_CONNECTIONS: {
    type: 'integer',
    minimum: 1,
    maximum: 100_000,
    default: 512,
    description: 'connections of a worker for one listing; more calls wait up to a second, then get `upstream_busy`',
  },
  MAX_REQUEST_BODY_BYTES: {
    type: 'integer',
    minimum: 0,
    maximum: 1_073_741_824,
    default: 10_485_760,
    description: 'largest request body of a call',
  },
  IDLE_BODY_SECONDS: {
    type: 'integer',
    minimum: 1,
    maximum: 86_400,
    default: 300,
    description: 'longest silence of a service within a response body',
  },
  ANONYMOUS_RATE_LIMIT: {
    type: 'integer',
    minimum: 1,
    maximum: 1_000_000,
    default: 60,
    description: 'requests per minute of an address without a key',
  },
  TRUSTED_PROXY_HOPS: {
    type: 'integer',
    minimum: 0,
    maximum: 10,
    default: 0,
    description: 'proxies in front whose `X-Forwarded-For` is believed',
  },
  PLATFORM_FEE_BASIS_POINTS: {
    type: 'integer',
    minimum: 0,
    maximum: 10_000,
    default: 1000,
    description: "the platform's share of each charge, in 1/100 of a percent",
  },
  REDIS_COMMAND_TIMEOUT_MS: {
    type: 'integer',
    minimum: 10,
    maximum: 20_000,
    default: 500,
    description: 'a batch without a reply for this long: 503, and the call is cancelled by id',
  },
  REDIS_SHARDS: {
    type: 'integer',
    minimum: 1,
    maximum: 1024,
    default: 16,
    description: 'shard tags; fixed for the life of an installation',
  },
  INSTANCE_LEASE_SECONDS: {
    type: 'integer',
    minimum: 5,
    maximum: 3600,
    default: 15,
    description: 'a gateway silent for this long is dead: its open calls are refunded',
  },
  MAX_BACKLOG_EVENTS: {
    type: 'integer',
    minimum: 1000,
    maximum: 1_000_000_000,
    default: 5_000_000,
    description:
      'usage events waiting for Postgres; beyond it no new calls (of Redis each takes about 260 bytes, and more with long paths)',
  },
  DRAIN_SECONDS: {
    type: 'integer',
    minimum: 0,
    maximum: 3600,
    default: DRAIN_SECONDS,
    description: 'how long calls under way may take to finish after SIGTERM',
  },
} as const satisfies Record<string, { type: string; description: string } & Record<string, unknown>>;
