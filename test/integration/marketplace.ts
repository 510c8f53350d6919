// A whole marketplace in this process, on real stores and free ports, driven over HTTP as a caller would.

import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { type Config, loadConfig } from '../../src/config/config.ts';
import { loadUws } from '../../src/http/uws.ts';
import type { Log } from '../../src/observability/log.ts';
import { Metrics } from '../../src/observability/metrics.ts';
import { readMigrations } from '../../src/platform/migrate.ts';
import { type Gateway, startGateway } from '../../src/roles/gateway.ts';
import { openStores, type Stores } from '../../src/roles/stores.ts';
import { startWriter, type Writer } from '../../src/roles/writer.ts';
import { createDatabase, startTestRedis, type TestRedis } from '../support/stores.ts';
import { until } from '../support/wait.ts';

export type Key = { readonly key_id: string; readonly secret: string; readonly account_id: string };
export type Usage = {
  readonly records: readonly CallRecord[];
  readonly total_calls: number;
  readonly total_spent: number;
};
export type CallRecord = {
  readonly usage_id: string;
  readonly status: number;
  readonly amount: number;
  readonly outcome: string;
  readonly free_tier: boolean;
  readonly request_bytes: number;
  readonly response_bytes: number;
};

/** Log lines of the gateway, kept so that a test can look for secrets in them. */
export class MemoryLog implements Log {
  readonly lines: string[] = [];
  debug = (fields: object, message: string): void => this.#add('debug', fields, message);
  info = (fields: object, message: string): void => this.#add('info', fields, message);
  warn = (fields: object, message: string): void => this.#add('warn', fields, message);
  error = (fields: object, message: string): void => this.#add('error', fields, message);
  fatal = (fields: object, message: string): void => this.#add('fatal', fields, message);

  #add(level: string, fields: object, message: string): void {
    const shown = Object.fromEntries(
      Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? String(value.stack) : value]),
    );
    this.lines.push(JSON.stringify({ level, message, ...shown }));
  }
}

export type TestService = { readonly url: string; readonly port: number; close(): Promise<void> };

/** A service on a free port of the loopback. */
export async function startService(listener: RequestListener): Promise<TestService> {
  const server = createServer(listener);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

export async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

/** Answers with what was received: for header, path and body rules. */
export async function echo(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await bodyOf(request);
  const received = {
    method: request.method,
    url: request.url,
    headers: request.rawHeaders,
    body: body.toString('latin1'),
  };
  response.setHeader('Content-Type', 'application/json');
  response.end(JSON.stringify(received));
}

export type ServiceOptions = {
  readonly endpoint: string;
  readonly price?: number;
  readonly free_calls?: number;
  readonly timeout_seconds?: number;
};

export class Marketplace {
  readonly baseUrl: string;
  readonly stores: Stores;
  readonly redis: TestRedis;
  readonly log: MemoryLog;
  readonly admin: Key;
  readonly provider: Key;
  readonly #gateway: Gateway;
  readonly #metrics: Metrics;
  #writer: Writer | null;
  readonly #startWriter: () => Promise<Writer>;
  readonly #startGateway: () => Promise<Gateway>;
  readonly #cleanUp: () => Promise<void>;
  #gatewayStopped: ReturnType<Gateway['stop']> | null = null;

  private constructor(parts: {
    gateway: Gateway;
    metrics: Metrics;
    writer: Writer | null;
    startWriter: () => Promise<Writer>;
    startGateway: () => Promise<Gateway>;
    stores: Stores;
    redis: TestRedis;
    log: MemoryLog;
    admin: Key;
    provider: Key;
    cleanUp: () => Promise<void>;
  }) {
    this.baseUrl = `http://127.0.0.1:${parts.gateway.port}`;
    this.stores = parts.stores;
    this.redis = parts.redis;
    this.log = parts.log;
    this.admin = parts.admin;
    this.provider = parts.provider;
    this.#gateway = parts.gateway;
    this.#metrics = parts.metrics;
    this.#writer = parts.writer;
    this.#startWriter = parts.startWriter;
    this.#startGateway = parts.startGateway;
    this.#cleanUp = parts.cleanUp;
  }

  /** @param settings environment variables beyond the stores */
  static async start(
    settings: Readonly<Record<string, string>> = {},
    {
      writer: withWriter = true,
      durableRedis = false,
    }: { readonly writer?: boolean; readonly durableRedis?: boolean } = {},
  ): Promise<Marketplace> {
    const database = await createDatabase();
    const redis = await startTestRedis(durableRedis ? { appendonly: true, appendfsync: 'always' } : {});
    const config: Config = loadConfig({
      DATABASE_URL: database.url,
      REDIS_URL: redis.url,
      HOST: '127.0.0.1',
      PORT: '0',
      UPSTREAM_ALLOW_CIDRS: '127.0.0.0/8',
      ANONYMOUS_RATE_LIMIT: '100000',
      DRAIN_SECONDS: '1',
      ...settings,
    });
    const log = new MemoryLog();
    const migrations = readMigrations(fileURLToPath(new URL('../../migrations', import.meta.url)));
    const stores = await openStores(config, { name: 'test', maxConnections: 5, migrations, log });
    const metrics = new Metrics();
    const begin = (): Promise<Writer> => startWriter({ config, stores, metrics: new Metrics(), log });
    const writer = withWriter ? await begin() : null;
    const another = (its: Metrics): Promise<Gateway> =>
      startGateway({ config, stores, uws: loadUws(process.env), metrics: its, log });
    const gateway = await another(metrics);
    const url = `http://127.0.0.1:${gateway.port}/api/v1/keys`;
    const admin = await createKey(url, { owner_id: 'operator', role: 'admin' });
    const provider = await createKey(url, { owner_id: 'provider', role: 'provider' });
    for (const { key_id } of [admin, provider]) await raiseLimit(url, admin, key_id);
    const cleanUp = async (): Promise<void> => {
      await redis.stop();
      await database.drop();
    };
    return new Marketplace({
      gateway,
      metrics,
      writer,
      startWriter: begin,
      startGateway: () => another(new Metrics()),
      stores,
      redis,
      log,
      admin,
      provider,
      cleanUp,
    });
  }

  /** What SIGTERM does to a gateway. */
  stopGateway(): ReturnType<Gateway['stop']> {
    this.#gatewayStopped ??= this.#gateway.stop();
    return this.#gatewayStopped;
  }

  /** A second gateway on the same stores, with caches of its own. */
  async anotherGateway(): Promise<{ baseUrl: string; stop(): Promise<unknown> }> {
    const { port, stop } = await this.#startGateway();
    return { baseUrl: `http://127.0.0.1:${port}`, stop };
  }

  async startWriter(): Promise<void> {
    this.#writer ??= await this.#startWriter();
  }

  async stop(): Promise<{ callsCut: number; unsettled: number }> {
    const left = await this.stopGateway();
    await this.#writer?.stop();
    await this.stores.close();
    await this.#cleanUp();
    return left;
  }

  /** A request to the API; the path begins with `/api/v1` or is one of the operations paths. */
  request(
    path: string,
    options: { key?: Key | undefined; method?: string; body?: unknown; headers?: Record<string, string> } = {},
  ): Promise<Response> {
    const headers: Record<string, string> = { ...options.headers };
    if (options.key !== undefined) headers.Authorization = authorization(options.key);
    const init: RequestInit = { method: options.method ?? 'GET', headers };
    if (options.body !== undefined) {
      headers['Content-Type'] = 'application/json';
      init.body = JSON.stringify(options.body);
    }
    return fetch(this.baseUrl + path, init);
  }

  async json<T>(path: string, options: Parameters<Marketplace['request']>[1] = {}): Promise<T> {
    const response = await this.request(path, options);
    if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
    return (await response.json()) as T;
  }

  /** A buyer with money, and a rate limit no test runs into by accident. */
  async buyer(usd: number): Promise<Key> {
    const url = `${this.baseUrl}/api/v1/keys`;
    const key = await createKey(url, { owner_id: 'buyer', role: 'buyer' });
    await raiseLimit(url, this.admin, key.key_id);
    if (usd > 0) await this.credit(key, usd, `first credit of ${key.key_id}`);
    return key;
  }

  async credit(key: Key, usd: number, reference: string): Promise<void> {
    const body = { account_id: key.account_id, amount: usd, reference };
    await this.json('/api/v1/admin/credits', { key: this.admin, method: 'POST', body });
  }

  /** Another key of the same account, with the same limit. */
  async anotherKey(of: Key): Promise<Key> {
    const url = `${this.baseUrl}/api/v1/keys`;
    const key = await createKey(url, { owner_id: 'buyer', role: 'buyer' }, { Authorization: authorization(of) });
    await raiseLimit(url, this.admin, key.key_id);
    return { ...key, account_id: of.account_id };
  }

  /** Lists a service. @returns its proxy path without the slash at the end */
  async service(options: ServiceOptions): Promise<string> {
    const body = { name: 'test service', description: '', category: 'test', price: 0, ...options };
    const { id } = await this.json<{ id: string }>('/api/v1/services', { key: this.provider, method: 'POST', body });
    return `/api/v1/proxy/${id}`;
  }

  /** A number the gateway reports, summed over its labels. */
  async metric(name: string): Promise<number> {
    const lines = (await this.#metrics.render()).split('\n');
    const values = lines.filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`));
    return values.reduce((sum, line) => sum + Number(line.split(' ').at(-1)), 0);
  }

  async balance(key: Key): Promise<{ balance: number; held: number }> {
    return this.json('/api/v1/balance/me', { key });
  }

  /** Waits until every admitted call (of the account) is settled and its usage event is in Postgres. */
  async settled(account = ''): Promise<void> {
    const { redis, keys } = this.stores;
    await until(async () => {
      const holds = await Promise.all(keys.open.map((open) => redis.command('hvals', [open]) as Promise<string[]>));
      // A tombstone is no hold.
      if (holds.flat().some((hold) => !hold.startsWith('x') && hold.includes(account))) return false;
      const waiting = await Promise.all(keys.usage.map((stream) => redis.command('xlen', [stream])));
      return waiting.every((length) => length === 0);
    });
  }

  /** All records of the key, newest first, once nothing of its account is under way any more. */
  async records(key: Key): Promise<readonly CallRecord[]> {
    await this.settled(key.account_id);
    return (await this.json<Usage>('/api/v1/usage/me?limit=1000', { key })).records;
  }

  /** The money identity: what Redis and Postgres say of every wallet, and that the books sum to zero. */
  async books(): Promise<{ wallets: unknown; drifting: unknown; total: string; negative: number }> {
    await this.settled();
    const { redis, keys, sql } = this.stores;
    const rows = await sql<{ id: string; balance: number }[]>`
      SELECT account_id AS id, balance FROM balances WHERE ledger = 'wallet'`;
    const drifting = [];
    for (const { id, balance } of rows) {
      const live = await redis.command('hget', [keys.wallet(keys.shardOf(id), id), 'balance']);
      if (live !== null && Number(live) !== Number(balance)) drifting.push({ id, live, balance });
    }
    const [sums] = await sql<{ total: string; negative: number }[]>`
      SELECT sum(amount)::text AS total,
             (SELECT count(*)::int FROM balances WHERE ledger = 'wallet' AND balance < 0) AS negative FROM entries`;
    return { wallets: rows.length, drifting, total: sums?.total ?? '0', negative: sums?.negative ?? 0 };
  }

  /** The key's usage once it has `calls` records. */
  async usage(key: Key, calls: number): Promise<Usage> {
    return until(async () => {
      const usage = await this.json<Usage>('/api/v1/usage/me', { key });
      return usage.total_calls >= calls ? usage : null;
    });
  }
}

export const authorization = (key: Key): string => `Bearer ${key.key_id}:${key.secret}`;

async function createKey(url: string, body: object, headers: Record<string, string> = {}): Promise<Key> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  if (response.status !== 201) throw new Error(`POST /keys: ${response.status} ${await response.text()}`);
  return (await response.json()) as Key;
}

async function raiseLimit(url: string, admin: Key, keyId: string): Promise<void> {
  const response = await fetch(`${url}/${keyId}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json', Authorization: authorization(admin) },
    body: JSON.stringify({ rate_limit: 300 }),
  });
  if (!response.ok) throw new Error(`PATCH /keys: ${response.status} ${await response.text()}`);
}
