// @ts-check
// Puts a catalog of many services directly into Postgres. Through the API that would take longer than everything else.

import postgres from 'postgres';

/**
 * @param {string} databaseUrl with the schema in place, and no gateway running yet
 * @param {number} count
 */
export async function insertServices(databaseUrl, count) {
  const sql = postgres(databaseUrl, { max: 1, onnotice: () => {} });
  const [provider] = await sql`
    INSERT INTO accounts (id, owner_id) VALUES (gen_random_uuid(), 'bench catalog') RETURNING id`;
  await sql`
    INSERT INTO services (id, provider_id, name, description, endpoint, price, free_calls, category, timeout_seconds)
    SELECT gen_random_uuid(), ${provider?.id},
      (ARRAY['Weather', 'Translation', 'Search', 'Embedding', 'Summary', 'Chart', 'Address'])[1 + n % 7] || ' service ' || n,
      'Service number ' || n || ' of the benchmark. ' || repeat('It answers questions that agents ask every day. ', 3),
      'http://127.0.0.1:9/' || n, (n % 200) * 50, CASE WHEN n % 3 = 0 THEN 100 ELSE 0 END,
      (ARRAY['data', 'text', 'image', 'search', 'finance', 'maps', 'code', 'audio', 'video', 'misc'])[1 + n % 10], 30
    FROM generate_series(1, ${count}::int) AS n`;
  await sql.end();
}
