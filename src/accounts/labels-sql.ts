import type { Sql } from '../platform/postgres.ts';

/** The labels of accounts. */
export type Labels = ReadonlyMap<string, string>;

/** The labels of the accounts on a page of a list, looked up by primary key. Ids without an account have no label. */
export async function selectLabels(sql: Sql, accountIds: readonly string[]): Promise<Labels> {
  const ids = [...new Set(accountIds)];
  if (ids.length === 0) return new Map();
  const rows = await sql<{ id: string; label: string }[]>`
    SELECT id, owner_id AS label FROM accounts WHERE id = ANY(${ids}::uuid[])`;
  return new Map(rows.map(({ id, label }) => [id, label]));
}

/** The names of the services on a page of a list. Of a closed account's services only records of calls show the name. */
export async function selectNames(sql: Sql, serviceIds: readonly string[]): Promise<Labels> {
  const ids = [...new Set(serviceIds)];
  if (ids.length === 0) return new Map();
  const rows = await sql<{ id: string; name: string }[]>`
    SELECT s.id, s.name FROM services s JOIN accounts a ON a.id = s.provider_id AND a.status <> 'closed'
    WHERE s.id = ANY(${ids}::uuid[])`;
  return new Map(rows.map(({ id, name }) => [id, name]));
}
