// A running marketplace as its users and its operator see it: over HTTP, and in its stores.

import { isRedisUnavailable } from '../../src/platform/redis.ts';
import type { Stores } from '../../src/roles/stores.ts';
import { until } from '../support/wait.ts';
import { type Answered, ask, type Question } from './ask.ts';

export type Key = { readonly key_id: string; readonly secret: string; readonly account_id: string };
export type Usage = {
  readonly records: readonly CallRecord[];
  readonly total_calls: number;
  readonly total_spent: number;
};
export type CallRecord = {
  readonly usage_id: string;
  readonly method: string;
  readonly path: string;
  readonly status: number;
  readonly amount: number;
  readonly authorized?: number;
  readonly clamped?: boolean;
  readonly tag?: string;
  readonly replays?: number;
  readonly outcome: string;
  readonly free_tier: boolean;
  readonly request_bytes: number;
  readonly response_bytes: number;
};

export type ServiceOptions = {
  readonly endpoint: string;
  readonly name?: string;
  readonly description?: string;
  readonly category?: string;
  readonly price?: number;
  readonly max_price?: number;
  readonly free_calls?: number;
  readonly timeout_seconds?: number;
  readonly idle_seconds?: number;
  readonly protocol?: 'http' | 'mcp';
  readonly only_operations?: boolean;
  readonly forward_headers?: readonly string[];
  readonly upstream_headers?: Readonly<Record<string, string>>;
  readonly operations?: readonly object[];
};

type JsonRequest = Question & { readonly key?: Key | undefined };

/** Requests a minute that no test makes by accident. */
const RATE_LIMIT = 300;

/** The first two accounts of an empty marketplace. */
export type Founders = { readonly admin: Key; readonly provider: Key };

export type MarketParts = Founders & { readonly baseUrl: string; readonly stores: Stores };

export class MarketClient {
  readonly baseUrl: string;
  readonly stores: Stores;
  readonly admin: Key;
  readonly provider: Key;

  protected constructor(parts: MarketParts) {
    this.baseUrl = parts.baseUrl;
    this.stores = parts.stores;
    this.admin = parts.admin;
    this.provider = parts.provider;
  }

  /** Sends a request to the API. The path begins with `/api/v1`, or is `/healthz` or `/readyz`. */
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

  async json<T>(path: string, options: JsonRequest = {}): Promise<T> {
    return parsed<T>(path, await this.#ask(path, options));
  }

  /** As `json`, for what a test sets up or looks up: after 503 it asks again, because on a busy machine Redis may answer late. */
  async served<T>(path: string, options: JsonRequest = {}): Promise<T> {
    return parsed<T>(path, await untilServed(() => this.#ask(path, options)));
  }

  #ask(path: string, { key, headers, ...question }: JsonRequest): Promise<Answered> {
    return ask(this.baseUrl + path, {
      ...question,
      headers: key === undefined ? headers : { ...headers, Authorization: authorization(key) },
    });
  }

  /** Makes a buyer with money, and a rate limit that no test reaches by accident. */
  async buyer(usd: number): Promise<Key> {
    const key = await createKey(`${this.baseUrl}/api/v1/keys`, { owner_id: 'buyer', role: 'buyer' });
    await this.#raiseLimit(key);
    if (usd > 0) await this.credit(key, usd, `first credit of ${key.key_id}`);
    return key;
  }

  /** Makes a provider besides `provider`, with the same limit. */
  async anotherProvider(): Promise<Key> {
    const key = await createKey(`${this.baseUrl}/api/v1/keys`, { owner_id: 'another provider', role: 'provider' });
    await this.#raiseLimit(key);
    return key;
  }

  /** Of a key that no gateway and no Redis knows yet. To ask an operator would take as long as everything else about a buyer. */
  async #raiseLimit({ key_id }: Key): Promise<void> {
    await this.stores.sql`UPDATE api_keys SET rate_limit = ${RATE_LIMIT} WHERE key_id = ${key_id}`;
  }

  async credit(key: Key, usd: number, reference: string): Promise<void> {
    const body = { account_id: key.account_id, amount: usd, reference };
    await this.served('/api/v1/admin/credits', { key: this.admin, method: 'POST', body });
  }

  /** Makes another key of the same account, with the same limit. */
  async anotherKey(of: Key): Promise<Key> {
    const headers = { Authorization: authorization(of) };
    const key = await createKey(`${this.baseUrl}/api/v1/keys`, { role: 'buyer' }, headers);
    await this.#raiseLimit(key);
    return { ...key, account_id: of.account_id };
  }

  /** Lists a service. @returns its proxy path without the slash at the end */
  async service(options: ServiceOptions): Promise<string> {
    const body = { name: 'test service', description: '', category: 'test', price: 0, ...options };
    const { id } = await this.served<{ id: string }>('/api/v1/services', { key: this.provider, method: 'POST', body });
    return `/api/v1/proxy/${id}`;
  }

  async balance(key: Key): Promise<{ balance: number; held: number }> {
    return this.served('/api/v1/balance/me', { key });
  }

  /** Waits until every admitted call (of the account) is settled and its usage event is in Postgres. */
  async settled(account = ''): Promise<void> {
    const { keys } = this.stores;
    await until(async () => {
      const holds = await Promise.all(keys.open.map((open) => this.#inRedis('hvals', open) as Promise<string[]>));
      // A tombstone is no hold.
      if (holds.flat().some((hold) => !hold.startsWith('x') && hold.includes(account))) return false;
      const waiting = await Promise.all(keys.usage.map((stream) => this.#inRedis('xlen', stream)));
      return waiting.every((length) => length === 0);
    });
  }

  /** Waits until Redis was compared with Postgres: until then wallets with nothing under way may leave Redis. */
  async compared(): Promise<void> {
    const { sql, keys } = this.stores;
    await until(async () => (await sql`SELECT FROM shard_histories WHERE verified = doubt`).length === keys.shards);
  }

  /** All records of the key, newest first, after waiting until nothing of its account is under way. */
  async records(key: Key): Promise<readonly CallRecord[]> {
    await this.settled(key.account_id);
    return (await this.served<Usage>('/api/v1/usage/me?limit=1000', { key })).records;
  }

  /** Reads from Redis, again where its answer does not come within the time limit of this marketplace. */
  #inRedis(command: string, ...args: string[]): Promise<unknown> {
    return until(async () => {
      try {
        return { found: await this.stores.redis.command(command, args) };
      } catch (error) {
        if (isRedisUnavailable(error)) return null;
        throw error;
      }
    }).then(({ found }) => found);
  }

  /** Checks the money identity of every wallet in Redis and Postgres, and sums up the books. */
  async books(): Promise<{ wallets: unknown; drifting: unknown; total: string; negative: number }> {
    await this.settled();
    const { keys, sql } = this.stores;
    const rows = await sql<{ id: string; balance: number }[]>`
      SELECT account_id AS id, balance FROM balances WHERE ledger = 'wallet'`;
    const drifting = [];
    for (const { id, balance } of rows) {
      const live = await this.#inRedis('hget', keys.wallet(keys.shardOf(id), id), 'balance');
      if (live !== null && Number(live) !== Number(balance)) drifting.push({ id, live, balance });
    }
    const [sums] = await sql<{ total: string; negative: number }[]>`
      SELECT sum(amount)::text AS total,
             (SELECT count(*)::int FROM balances WHERE ledger = 'wallet' AND balance < 0) AS negative FROM entries`;
    return { wallets: rows.length, drifting, total: sums?.total ?? '0', negative: sums?.negative ?? 0 };
  }

  /** Waits until the key has `calls` records. @returns the key's usage */
  async usage(key: Key, calls: number): Promise<Usage> {
    return until(async () => {
      const usage = await this.served<Usage>('/api/v1/usage/me', { key });
      return usage.total_calls >= calls ? usage : null;
    });
  }
}

export const authorization = (key: Key): string => `Bearer ${key.key_id}:${key.secret}`;

/** Makes the first admin and a provider. */
export async function found(baseUrl: string): Promise<Founders> {
  const url = `${baseUrl}/api/v1/keys`;
  const admin = await createKey(url, { owner_id: 'operator', role: 'admin' });
  const provider = await createKey(url, { owner_id: 'provider', role: 'provider' });
  for (const { key_id } of [admin, provider]) await raiseLimit(url, admin, key_id);
  return { admin, provider };
}

/** A gateway on a busy machine may say 503 while an installation is set up: it is asked again. */
const untilServed = (again: () => Promise<Answered>): Promise<Answered> =>
  until(async () => {
    const answered = await again();
    return answered.status === 503 ? null : answered;
  });

function parsed<T>(path: string, { status, text }: Answered): T {
  if (status < 200 || status > 299) throw new Error(`${path}: ${status} ${text}`);
  return JSON.parse(text) as T;
}

async function createKey(url: string, body: object, headers: Record<string, string> = {}): Promise<Key> {
  const answered = await untilServed(() => ask(url, { method: 'POST', headers, body }));
  if (answered.status !== 201) throw new Error(`POST /keys: ${answered.status} ${answered.text}`);
  return JSON.parse(answered.text) as Key;
}

async function raiseLimit(url: string, admin: Key, keyId: string): Promise<void> {
  const headers = { Authorization: authorization(admin) };
  const body = { rate_limit: RATE_LIMIT };
  const { status, text } = await untilServed(() => ask(`${url}/${keyId}`, { method: 'PATCH', headers, body }));
  if (status !== 200) throw new Error(`PATCH /keys: ${status} ${text}`);
}
