import { isAbsolute } from 'node:path';
import { isCidr } from '../platform/addresses.ts';
import { Operator } from '../platform/operator.ts';
import { readSettings } from './read-settings.ts';
import { parseSecretsKeys } from './secrets-key.ts';
import { SETTINGS } from './settings.ts';
import { MAX_WORKERS, parseWorkers } from './workers.ts';

/** The role of this process. `all` means gateway and writer; `migrate` only prepares the stores, then ends. */
export type ProcessRole = 'all' | 'gateway' | 'writer' | 'migrate';

export type Config = {
  readonly databaseUrl: string;
  readonly redisUrl: string;
  readonly host: string;
  readonly port: number;
  /** How many gateway processes share the port. */
  readonly workers: number;
  /** Whether gateway and writer run on one event loop, without a supervisor. */
  readonly oneProcess: boolean;
  readonly metricsPort: number;
  readonly logLevel: string;
  /** Whether the gateway writes a line of log for each request. */
  readonly accessLog: boolean;
  readonly adminBootstrapToken: string | null;
  readonly allowedOrigins: readonly string[];
  readonly upstreamAllowCidrs: readonly string[];
  /** Keys for AES-256, of 32 bytes each. The first encrypts. Empty: listings cannot have secrets. */
  readonly secretsKeys: readonly Uint8Array[];
  readonly upstreamMaxConnections: number;
  readonly upstreamMaxTotalConnections: number;
  readonly maxRequestBodyBytes: number;
  readonly idleBodySeconds: number;
  readonly anonymousRateLimit: number;
  readonly maxRateLimit: number;
  readonly maxListingsPerAccount: number;
  readonly maxAccountsPerAddress: number;
  readonly sessionDays: number;
  readonly trustedProxyHops: number;
  readonly platformFeeBasisPoints: number;
  readonly priceNoticeSeconds: number;
  readonly redisCommandTimeoutMs: number;
  /** How many replicas must have a trip; 0: none. */
  readonly redisWaitReplicas: number;
  readonly redisShards: number;
  readonly instanceLeaseSeconds: number;
  readonly maxBacklogEvents: number;
  /** Maximum bytes of the body of one answer kept for repeats, and of all these answers. */
  readonly replayMaxBytes: number;
  readonly replayBytes: number;
  readonly operator: Operator;
  /** Whether the gateway serves the pages of web/. */
  readonly web: boolean;
  readonly drainSeconds: number;
  /** For how many days single calls are kept; 0: for ever. */
  readonly usageRetentionDays: number;
  /** Where calls are exported before they are dropped; null: nowhere. */
  readonly exportDir: string | null;
  /** Set by `npm start`, not by operators: `/readyz` answers 503 until this file exists. */
  readonly readyFile: string | null;
};

/** All faults of the environment, one per line, so that an operator can fix them all before the next start. */
export class ConfigError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`the configuration is invalid:\n${faults.map((fault) => `  ${fault}`).join('\n')}`);
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

/** Turns the environment into a validated, frozen configuration. An empty variable counts as unset. Throws `ConfigError`. */
export function loadConfig(env: Readonly<Record<string, string | undefined>>): Config {
  const { values, faults } = readSettings(SETTINGS, ['DATABASE_URL', 'REDIS_URL'], env);
  const text = (name: keyof typeof SETTINGS): string => values[name] as string;
  const number = (name: keyof typeof SETTINGS): number => values[name] as number;
  const list = (name: keyof typeof SETTINGS): string[] =>
    text(name)
      .split(',')
      .map((entry) => entry.trim())
      .filter((entry) => entry !== '');
  const allowedOrigins = list('ALLOWED_ORIGINS');
  for (const origin of allowedOrigins) {
    if (!isWebOrigin(origin))
      faults.push(
        `ALLOWED_ORIGINS has ${JSON.stringify(origin)}, which is not an origin such as https://app.example.com`,
      );
  }
  const upstreamAllowCidrs = list('UPSTREAM_ALLOW_CIDRS');
  for (const range of upstreamAllowCidrs) {
    if (!isCidr(range))
      faults.push(`UPSTREAM_ALLOW_CIDRS has ${JSON.stringify(range)}, which is not a range such as 10.0.0.0/8`);
  }
  const secretsKeys = parseSecretsKeys(list('SECRETS_KEY'));
  faults.push(...secretsKeys.faults);
  const { OPERATOR_NAME: name, OPERATOR_CONTACT: contact, TERMS_URL, TOP_UP_URL } = values as OperatorValues;
  for (const [setting, url] of Object.entries({ TOP_UP_URL, TERMS_URL })) {
    if (url !== undefined && !isWebUrl(url)) faults.push(`${setting} must be an http or https URL`);
  }
  if (contact !== undefined && !isWebUrl(contact) && !isMailAddress(contact))
    faults.push('OPERATOR_CONTACT must be an e-mail address, or an http or https URL');
  const details = {
    ...(name === undefined ? {} : { name }),
    ...(contact === undefined ? {} : { contact }),
    ...(TERMS_URL === undefined ? {} : { terms_url: TERMS_URL }),
  };
  const usageRetentionDays = number('USAGE_RETENTION_DAYS');
  // Events of a dropped day are not stored. So the retention must be longer than Postgres could be away.
  if (usageRetentionDays > 0 && usageRetentionDays < MIN_RETENTION_DAYS)
    faults.push(`USAGE_RETENTION_DAYS must be 0 or at least ${MIN_RETENTION_DAYS}`);
  const exportDir = (values.EXPORT_DIR as string | undefined) ?? null;
  if (exportDir !== null && !isAbsolute(exportDir)) faults.push('EXPORT_DIR must be an absolute path');
  const workers = parseWorkers(text('WORKERS'));
  if (workers === null) faults.push(`WORKERS must be auto or a number from 1 to ${MAX_WORKERS}`);
  else if (workers > 1 && number('PORT') === 0)
    faults.push('PORT must not be 0 when there are several WORKERS to share it');
  const oneProcess = text('ONE_PROCESS') === 'on';
  if (oneProcess && workers !== null && workers > 1) faults.push('ONE_PROCESS=on contradicts WORKERS above 1');
  if (faults.length > 0 || workers === null) throw new ConfigError(faults);
  return Object.freeze({
    databaseUrl: text('DATABASE_URL'),
    redisUrl: text('REDIS_URL'),
    host: text('HOST'),
    port: number('PORT'),
    workers,
    oneProcess,
    metricsPort: number('METRICS_PORT'),
    logLevel: text('LOG_LEVEL'),
    accessLog: text('ACCESS_LOG') === 'on',
    adminBootstrapToken: (values.ADMIN_BOOTSTRAP_TOKEN as string | undefined) ?? null,
    allowedOrigins: Object.freeze(allowedOrigins),
    upstreamAllowCidrs: Object.freeze(upstreamAllowCidrs),
    secretsKeys: Object.freeze(secretsKeys.keys),
    upstreamMaxConnections: number('UPSTREAM_MAX_CONNECTIONS'),
    upstreamMaxTotalConnections: number('UPSTREAM_MAX_TOTAL_CONNECTIONS'),
    maxRequestBodyBytes: number('MAX_REQUEST_BODY_BYTES'),
    idleBodySeconds: number('IDLE_BODY_SECONDS'),
    anonymousRateLimit: number('ANONYMOUS_RATE_LIMIT'),
    maxRateLimit: number('MAX_RATE_LIMIT'),
    maxListingsPerAccount: number('MAX_LISTINGS_PER_ACCOUNT'),
    maxAccountsPerAddress: number('MAX_ACCOUNTS_PER_ADDRESS'),
    sessionDays: number('SESSION_DAYS'),
    trustedProxyHops: number('TRUSTED_PROXY_HOPS'),
    platformFeeBasisPoints: number('PLATFORM_FEE_BASIS_POINTS'),
    priceNoticeSeconds: number('PRICE_NOTICE_SECONDS'),
    redisCommandTimeoutMs: number('REDIS_COMMAND_TIMEOUT_MS'),
    redisWaitReplicas: number('REDIS_WAIT_REPLICAS'),
    redisShards: number('REDIS_SHARDS'),
    instanceLeaseSeconds: number('INSTANCE_LEASE_SECONDS'),
    maxBacklogEvents: number('MAX_BACKLOG_EVENTS'),
    replayMaxBytes: number('REPLAY_MAX_BYTES'),
    replayBytes: number('REPLAY_BYTES'),
    operator: new Operator(details, TOP_UP_URL ?? null),
    web: text('WEB') === 'on',
    drainSeconds: number('DRAIN_SECONDS'),
    usageRetentionDays,
    exportDir,
    readyFile: env.TOLLGATE_READY_FILE || null,
  });
}

const MIN_RETENTION_DAYS = 30;

type OperatorValues = {
  readonly [name in 'OPERATOR_NAME' | 'OPERATOR_CONTACT' | 'TERMS_URL' | 'TOP_UP_URL']?: string;
};

const isMailAddress = (text: string): boolean => /^[!-?A-~]+@[!-?A-~]+$/.test(text);
const isWebUrl = (text: string): boolean =>
  /^[!-~]+$/.test(text) && URL.canParse(text) && /^https?:$/.test(new URL(text).protocol);

/**
 * Whether browsers send exactly this text as `Origin`: scheme, lower-case host, a port only if it is not the default, and no slash.
 */
function isWebOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
