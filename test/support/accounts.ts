import { Ajv } from 'ajv';
import type { Actor } from '../../src/accounts/audit.ts';
import type { ApiRequest, ApiResponse, JsonSchema, Route } from '../../src/http/route.ts';
import type { Caller, KeyRecord, Role } from '../../src/keys/caller.ts';
import { digestOfHash, hashSecret, newKeyId, newSecret } from '../../src/keys/credentials.ts';
import { sumsColumns } from '../../src/ledger/rollups/all-sums.ts';
import { STORED_CALL, type StoredCall, sumsOf } from '../../src/ledger/rollups/stored-calls.ts';
import { addSumsFrom } from '../../src/ledger/rollups/sum-tables.ts';
import { addTagSums, CLAIM_TAGS_SQL, tagColumns } from '../../src/ledger/rollups/tag-sums.ts';
import { dayOfId, timeOfId, uuidv7 } from '../../src/platform/ids.ts';
import { migrate, readMigrations } from '../../src/platform/migrate.ts';
import { openPostgres, type Sql } from '../../src/platform/postgres.ts';
import { createMigratedDatabase, OWN, type TestDatabase } from './stores.ts';

/** A new, migrated database with its own pool. @param empty  a database to migrate; default: one in the Postgres that all tests share */
export async function openTestDatabase(
  empty?: TestDatabase,
): Promise<{ sql: Sql; url: string; close: () => Promise<void> }> {
  const database = empty ?? (await createMigratedDatabase());
  const sql = openPostgres({ url: database.url, maxConnections: 8, applicationName: 'test' });
  await (empty === undefined ? sql.unsafe(OWN) : migrate(sql, readMigrations('migrations')));
  const close = async () => {
    await sql.end({ timeout: 1 });
    await database.drop();
  };
  return { sql, url: database.url, close };
}

/** Inserts an account with one key directly into the tables. */
export async function addAccount(sql: Sql, role: Role = 'buyer', ownerId = 'owner'): Promise<KeyRecord> {
  const accountId = uuidv7();
  await sql`INSERT INTO accounts (id, owner_id) VALUES (${accountId}, ${ownerId})`;
  return addKeyTo(sql, accountId, role, ownerId);
}

/** @param of.under  the key's parent */
export async function addKeyTo(
  sql: Sql,
  accountId: string,
  role: Role,
  ownerId = 'owner',
  of: { readonly under?: KeyRecord; readonly label?: string } = {},
): Promise<KeyRecord> {
  const ancestors = of.under === undefined ? [] : [...of.under.ancestors, of.under.keyId];
  const keyId = newKeyId();
  const secretHash = hashSecret(newSecret());
  await sql`
    INSERT INTO api_keys (key_id, account_id, role, secret_hash, ancestors, label)
    VALUES (${keyId}, ${accountId}, ${role}, ${secretHash}, ${ancestors}, ${of.label ?? null})`;
  const never = { previousSecretDigest: null, previousExpiresAtMs: 0, bearers: null };
  return {
    keyId,
    accountId,
    ownerId,
    role,
    ancestors,
    maxPriceMicros: null,
    services: null,
    expiresAtMs: null,
    secretDigest: digestOfHash(secretHash),
    ...never,
    rateLimit: 60,
    status: 'active',
    accountStatus: 'active',
    suspensionReason: null,
    buyer: null,
    lastRefill: 0,
    emptyUntilMs: 0,
  };
}

let lastServiceMs = 0;

/** Ids of services sort in the order in which they were added, even of two that were added in the same millisecond. */
export async function addService(sql: Sql, providerId: string, name = 'service'): Promise<string> {
  lastServiceMs = Math.max(lastServiceMs + 1, Date.now());
  const id = uuidv7(lastServiceMs);
  await sql`
    INSERT INTO services (id, provider_id, name, description, endpoint, price, category, timeout_seconds)
    VALUES (${id}, ${providerId}, ${name}, '', 'http://localhost/', 1000, 'data', 30)`;
  return id;
}

export type TestCall = {
  readonly atMs?: number;
  readonly buyer: Pick<KeyRecord, 'accountId' | 'keyId'>;
  readonly providerId?: string;
  readonly serviceId: string;
  readonly amount?: number;
  readonly fee?: number;
  readonly freeTier?: boolean;
  readonly outcome?: string;
  readonly latencyUs?: number;
  readonly path?: string;
  /** Only for a call priced by use. */
  readonly authorized?: number;
  readonly clamped?: boolean;
  readonly atCap?: boolean;
  readonly tag?: string | null;
};

/** Inserts a recorded call directly into the table, and adds it to the sums by hour. @returns its usage id */
export async function addCall(sql: Sql, call: TestCall): Promise<string> {
  const id = uuidv7(call.atMs ?? Date.now());
  await sql`
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee,
                       free_tier, outcome, latency_us, request_bytes, response_bytes, created_at, journal_id,
                       authorized, clamped, at_cap, tag)
    VALUES (${dayOfId(id)}, ${id}, ${call.buyer.accountId}, ${call.buyer.keyId}, ${call.providerId ?? uuidv7()},
            ${call.serviceId}, 'GET', ${call.path ?? '/x'}, 200, ${call.amount ?? 0}, ${call.fee ?? 0},
            ${call.freeTier ?? false}, ${call.outcome ?? 'completed'}, ${call.latencyUs ?? 1500}, 10, 20,
            ${new Date(timeOfId(id))}, 1, ${call.authorized ?? null}, ${call.clamped ?? null}, ${call.atCap ?? null},
            ${call.tag ?? null})`;
  const stored = await sql<
    StoredCall[]
  >`SELECT ${sql.text(STORED_CALL)} FROM calls WHERE day = ${dayOfId(id)} AND usage_id = ${id}`;
  const sums = sumsOf(stored);
  await sql.unsafe(`WITH ${addSumsFrom(1)} SELECT`, sumsColumns([sums]));
  const tags = tagColumns([sums]);
  if (tags !== null) {
    await sql.unsafe(CLAIM_TAGS_SQL, tags.slice(0, 3));
    await sql.unsafe(addTagSums(), tags);
  }
  return id;
}

/** Who acts where a test does what an operator does. */
export const OPERATOR: Actor = { actor: 'system', actorAccountId: null, requestId: null };

const NOBODY: Caller = { kind: 'ip' };

type Sent = {
  readonly by?: KeyRecord;
  readonly body?: unknown;
  readonly query?: unknown;
  readonly params?: Record<string, string>;
  readonly headers?: Record<string, string> /** The caller's, for limits. */;
  readonly address?: string;
};

/** Calls a route's handler as the http layer does after its checks. Of those, this repeats only access by role. */
export async function send(routes: readonly Route[], name: string, sent: Sent = {}): Promise<ApiResponse> {
  const route = findRoute(routes, name);
  if (Array.isArray(route.access)) {
    if (sent.by === undefined) throw new Error(`${name} needs a key`);
    if (sent.by.role !== 'admin' && !route.access.includes(sent.by.role)) throw new Error(`${name}: not for this role`);
  }
  const request: ApiRequest = {
    method: route.method,
    params: sent.params ?? {},
    query: sent.query ?? {},
    body: sent.body,
    header: (header) => sent.headers?.[header],
    caller: sent.by === undefined ? NOBODY : { kind: 'key', key: sent.by },
    address: sent.address ?? null,
    requestId: 'test',
  };
  return route.handle(request);
}

export function findRoute(routes: readonly Route[], name: string): Route {
  const route = routes.find(({ method, path }) => `${method} ${path.replace('/api/v1', '')}` === name);
  if (route === undefined) throw new Error(`no route ${name}`);
  return route;
}

/** It compiles each schema once. */
const ajv = new Ajv({ strict: true, allErrors: true });

/** Whether the schema takes the value, checked the way the http layer does. */
export function accepts(schema: JsonSchema | undefined, value: unknown): boolean {
  if (schema === undefined) throw new Error('the route has no such schema');
  return ajv.validate(schema, value);
}

// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
export const json = (response: ApiResponse): any => JSON.parse(JSON.stringify(response.body));
