// @ts-check
// Puts a hundred days of calls directly into Postgres. Their sums are made by `main.js rebuild-sums`.

import postgres from 'postgres';

const days = 100;
const flushesPerDay = 144;
const dayMs = 86_400_000;
const services = 1_000;
const providers = 50;

/** @param {number} n */
const hex = (n) => n.toString(16).padStart(12, '0');
/** @param {number} n from 1 */
export const providerId = (n) => `00000000-0000-7000-a000-${hex(n)}`;
/** @param {number} n from 1 */
export const serviceId = (n) => `00000000-0000-7000-b000-${hex(n)}`;

/**
 * The first key makes a tenth of the calls with three services, the last key ten in all, and the others share the rest.
 *
 * @param {string} databaseUrl with the schema in place, and no writer running yet
 * @param {readonly import('./keys.mjs').BenchKey[]} keys
 * @param {number} count
 * @param {(line: string) => void} progress
 * @param {() => unknown} sumUp makes the sums of the calls
 */
export async function insertCalls(databaseUrl, keys, count, progress, sumUp) {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  await sql`
    INSERT INTO accounts (id, owner_id)
    SELECT id, 'bench provider' FROM unnest(${range(providers).map(providerId)}::uuid[]) AS id`;
  await sql`
    INSERT INTO services (id, provider_id, name, description, endpoint, price, category, timeout_seconds)
    SELECT id, provider_id, 'bench', '', 'http://127.0.0.1:9/', 2000, 'data', 30
    FROM unnest(${range(services).map(serviceId)}::uuid[],
                ${range(services).map((n) => providerId(1 + (n % providers)))}::uuid[]) AS t (id, provider_id)`;
  await sql`CREATE TEMP TABLE bench_services AS SELECT row_number() OVER (ORDER BY id) AS n, id, provider_id FROM services`;
  await sql`
    CREATE TEMP TABLE bench_keys AS
    SELECT * FROM unnest(${range(keys.length)}::int[], ${keys.map(({ key_id }) => key_id)}::text[],
                         ${keys.map(({ account_id }) => account_id)}::uuid[]) AS t (n, key_id, account_id)`;
  await sql`ANALYZE bench_services; ANALYZE bench_keys`.simple();
  const today = Math.floor(Date.now() / dayMs) * dayMs;
  for (let ago = days - 1; ago >= 0; ago -= 1) {
    await insertDay(sql, today - ago * dayMs, count / days, keys.length);
    progress(`calls of ${days - ago} of ${days} days made`);
  }
  sumUp();
  await sql`ANALYZE`;
  await sql.end();
}

/** @param {number} length */
const range = (length) => Array.from({ length }, (_, i) => i + 1);

/** @param {postgres.Sql} sql @param {number} dayStart @param {number} calls @param {number} keys */
async function insertDay(sql, dayStart, calls, keys) {
  const day = new Date(dayStart).toISOString().slice(0, 10);
  const partition = `calls_${day.replaceAll('-', '')}`;
  await sql.unsafe(
    `CREATE TABLE IF NOT EXISTS ${partition} PARTITION OF calls FOR VALUES FROM ('${day}') TO ('${day}'::date + 1)`,
  );
  // Calls of today end a few minutes ago: the gateway's clock is that of their ids.
  const length = Math.min(dayMs, Date.now() - 600_000 - dayStart);
  if (length <= 0) return;
  await sql.unsafe(`
    WITH flushes AS (
      INSERT INTO journal (kind, created_at) SELECT 'usage', '${day}'::timestamptz FROM generate_series(1, ${flushesPerDay})
      RETURNING id
    ), ids AS (SELECT array_agg(id) AS of FROM flushes)
    INSERT INTO calls (day, usage_id, account_id, key_id, provider_id, service_id, method, path, status, amount, fee, free_tier,
                       outcome, latency_us, request_bytes, response_bytes, created_at, journal_id)
    SELECT '${day}', (lpad(to_hex(ms), 12, '0') || '7' || lpad(to_hex(made.n % 4096), 3, '0') || '8' || lpad(to_hex(made.n), 15, '0'))::uuid,
           k.account_id, k.key_id, s.provider_id, s.id, 'GET', '/hello', CASE WHEN made.n % 50 = 0 THEN 502 ELSE 200 END,
           CASE WHEN made.n % 50 = 0 THEN 0 ELSE 2000 END, CASE WHEN made.n % 50 = 0 THEN 0 ELSE 200 END, false,
           CASE WHEN made.n % 50 = 0 THEN 'refunded:upstream_5xx' ELSE 'completed' END, 1000 + made.n % 50000, 0, 221,
           to_timestamp(ms / 1000.0), ids.of[1 + made.n % ${flushesPerDay}]
    FROM (
      SELECT n, ${dayStart} + n * ${length}::bigint / ${Math.ceil(calls) + 1} AS ms,
             CASE WHEN n % 10 = 0 THEN 1 WHEN n = ${day.endsWith('5') ? 1 : -1} THEN ${keys} ELSE 2 + n * 7919 % ${keys - 2} END AS key,
             1 + n % 3 + CASE WHEN n % 10 = 0 THEN 0 ELSE n * 31 % ${services - 3} END AS service
      FROM generate_series(1::bigint, ${Math.ceil(calls)}) AS n
    ) AS made JOIN bench_keys k ON k.n = made.key JOIN bench_services s ON s.n = made.service, ids`);
}
