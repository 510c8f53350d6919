// @ts-check
// Puts the sums of a hundred million calls directly into Postgres, as a month or a year of flushes leaves them, and the calls of the last
// hour.

import path from 'node:path';
import { pathToFileURL } from 'node:url';
import postgres from 'postgres';
import { projectDir } from '../../scripts/local/dependencies.mjs';
import { providerId, serviceId } from './calls.mjs';
import { plantTrees } from './trees.mjs';

/** @typedef {import('./keys.mjs').BenchKey} BenchKey */

const services = 50;
export const monthDays = 30;
const yearDays = 365;
const callsPerMonth = 100_000_000;
/** Of the last hour, one in so many calls is there: no page of records reads more. */
const sampled = 4;
const dayMs = 86_400_000;
const mostBelowChild = 100;

/**
 * @param {string} databaseUrl with the schema in place, and no writer running yet
 * @param {readonly { root: BenchKey, keys: number }[]} accounts  `keys`: how many each has
 * @returns {Promise<(BenchKey | undefined)[]>} of each account a child key that has others below it, if it has any
 */
export async function insertMonth(databaseUrl, accounts, /** @type {(line: string) => void} */ progress) {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  await sql`INSERT INTO accounts (id, owner_id) VALUES (${providerId(1)}, 'bench provider')`;
  await sql`
    INSERT INTO services (id, provider_id, name, description, endpoint, price, category, timeout_seconds)
    SELECT id, ${providerId(1)}, 'bench', '', 'http://127.0.0.1:9/', 2000, 'data', 30
    FROM unnest(${Array.from({ length: services }, (_, i) => serviceId(1 + i))}::uuid[]) AS id`;
  const children = [];
  for (const { root, keys } of accounts) {
    progress(`an account with ${keys} keys`);
    children.push(await addKeys(databaseUrl, sql, root, keys));
    await insertSums(sql, root.account_id, keys);
    await insertLastHour(sql, root.account_id, keys);
  }
  progress('statistics of all tables');
  await sql`VACUUM ANALYZE`;
  await sql.end();
  return children;
}

/** @param {string} databaseUrl @param {postgres.Sql} sql @param {BenchKey} root @param {number} keys */
async function addKeys(databaseUrl, sql, root, keys) {
  if (keys === 1) return undefined;
  const [child] = await plantTrees(databaseUrl, [root], { levels: 1, rateLimit: 300, balanceUsd: 1_000_000 });
  const { newKeyId } = await import(pathToFileURL(path.join(projectDir, 'dist', 'keys', 'credentials.js')).href);
  const parents = /** @type {BenchKey} */ (child).key_id;
  const rows = Array.from({ length: keys - 2 }, (_, i) => ({
    key_id: newKeyId(),
    account_id: root.account_id,
    role: 'buyer',
    secret_hash: '0'.repeat(64),
    label: `agent ${i + 1}`,
    ancestors: i < mostBelowChild ? [root.key_id, parents] : [root.key_id],
    budget_amount: 1_000_000_000,
    budget_period: 'month',
  }));
  await sql`INSERT INTO api_keys ${sql(rows)}`;
  await sql`UPDATE accounts SET summed_from = '2000-01-01' WHERE id = ${root.account_id} AND ${keys >= 8}`;
  return child;
}

/** Each key calls each service on every day. @param {postgres.Sql} sql @param {string} accountId @param {number} keys */
async function insertSums(sql, accountId, keys) {
  const perRow = Math.ceil(callsPerMonth / monthDays / services / keys);
  const sums = (/** @type {string} */ calls) =>
    `${calls}, 0, ${calls} * (100 + (d % 7) * 10), ${calls} * 12345, ${calls}`;
  const days = (/** @type {number} */ count) =>
    `(SELECT (now() AT TIME ZONE 'UTC')::date - d AS day, d FROM generate_series(0, ${count - 1}) AS d) AS days`;
  const columns = 'calls, free_calls, spent, latency_sum_us, latency_count';
  const theKeys = `(SELECT key_id FROM api_keys WHERE account_id = '${accountId}') AS keys`;
  await sql.unsafe(`
    INSERT INTO key_days (key_id, day, service_id, account_id, ${columns})
    SELECT key_id, day, s.id, '${accountId}', ${sums(String(perRow))}
    FROM ${days(keys >= 8 ? monthDays : yearDays)} CROSS JOIN ${theKeys} CROSS JOIN services s ORDER BY day DESC, key_id`);
  await sql.unsafe(`
    INSERT INTO key_hours (key_id, hour, service_id, account_id, calls, completed, free_calls, succeeded, failed, spent,
                           latency_sum_us, latency_count, succeeded_us, first_call_at, last_call_at)
    SELECT key_id, date_trunc('hour', now()) - h * interval '1 hour', s.id, '${accountId}', 3, 3, 0, 3, 0, 300, 3000, 3, 3000, now(), now()
    FROM generate_series(0, 23) AS h CROSS JOIN ${theKeys} CROSS JOIN services s`);
  if (keys < 8) return;
  await sql.unsafe(`
    INSERT INTO account_days (account_id, day, service_id, ${columns})
    SELECT '${accountId}', day, s.id, ${sums(String(perRow * keys))} FROM ${days(yearDays)} CROSS JOIN services s`);
  await sql.unsafe(`
    INSERT INTO account_key_days (account_id, day, key_id, ${columns})
    SELECT '${accountId}', day, key_id, ${sums(String(perRow * services))} FROM ${days(yearDays)} CROSS JOIN ${theKeys} ORDER BY day DESC`);
}

/** @param {postgres.Sql} sql @param {string} accountId @param {number} keys */
async function insertLastHour(sql, accountId, keys) {
  const count = Math.round(callsPerMonth / monthDays / 24 / sampled);
  const [toMs, fromMs] = [Date.now() - 1_000, Date.now() - 3_600_000];
  for (const ms of [fromMs, toMs]) {
    const day = new Date(ms).toISOString().slice(0, 10);
    await sql.unsafe(
      `CREATE TABLE IF NOT EXISTS calls_${day.replaceAll('-', '')} PARTITION OF calls FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`,
    );
  }
  await sql.unsafe(`
    WITH flush AS (INSERT INTO journal (kind) VALUES ('usage') RETURNING id)
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier,
                       outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
    SELECT (to_timestamp(ms / 1000) AT TIME ZONE 'UTC')::date,
           (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(n % 4096), 3, '0') || '8' || substr(md5('${accountId}' || n), 1, 15))::uuid,
           '${accountId}', k.ids[1 + n * 7919 % ${keys}], '${providerId(1)}', s.ids[1 + n % ${services}], 'GET', '/hello', 200, 2000, 200,
           false, 'completed', 1000 + n % 50000, 0, 221, to_timestamp(ms / 1000.0), flush.id
    FROM (SELECT n, ${fromMs} + n * ${toMs - fromMs}::bigint / ${count} AS ms FROM generate_series(0::bigint, ${count - 1}) AS n) AS made,
         (SELECT array_agg(key_id) AS ids FROM api_keys WHERE account_id = '${accountId}') AS k,
         (SELECT array_agg(id ORDER BY id) AS ids FROM services) AS s, flush`);
}

/** @param {number} ago */
export const dayAgo = (ago) => new Date(Date.now() - ago * dayMs).toISOString().slice(0, 10);
