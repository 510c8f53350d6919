import { uuidv7 } from '../platform/ids.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import type { Listing, ListingFields, ListingPatch, ListingStatus } from './listing.ts';
import { type NextRow, nextColumns, nextOf, type TermsChange, termsAssignments } from './notice/notice-sql.ts';
import { withNextTerms } from './notice/terms.ts';
import type { Operation, Protocol } from './operations/operation.ts';

/** Channel on which every change of a listing is announced, in the transaction of the change. The payload is the service id. */
export const CHANNEL = 'tollgate_services';

type Fragment = ReturnType<Tx>;

type Row = {
  readonly id: string;
  readonly provider_id: string;
  readonly name: string;
  readonly description: string;
  readonly endpoint: string;
  readonly price: number;
  readonly max_price: number | null;
  readonly free_calls: number;
  readonly category: string;
  readonly timeout_seconds: number;
  readonly idle_seconds: number | null;
  readonly protocol: Protocol;
  readonly only_operations: boolean;
  readonly operation_terms: string | null;
  readonly docs_url: string | null;
  readonly health_path: string | null;
  readonly upstream_headers: string | null;
  readonly upstream_query: string | null;
  readonly signing_keys: string | null;
  readonly forward_headers: string | null;
  readonly blocked_buyers: string | null;
  readonly status: ListingStatus;
  readonly is_suspended: boolean;
  readonly created_at: Date;
  readonly version: number;
  readonly row_hash: number;
} & NextRow;

/**
 * The last byte of the id, as in `bucketOf`. It is a number, because Postgres sorts the rows by it, and texts took twice as long.
 */
const bucket = (sql: Tx) => sql`get_byte(uuid_send(id), 15)`;

/** 40 bits, so that the sum of a bucket's thousands of hashes is exact in a bigint and, modulo 2^48, in a JavaScript number. */
const rowHash = (sql: Tx) => sql`(hashtextextended(concat(id, xmin), 0) & 1099511627775)`;

/** @param hash the result of `rowHash`; a statement without xmin gives another number */
const columns = (sql: Tx, hash = rowHash(sql)) => sql`
  id, provider_id, name, description, endpoint, price, max_price, free_calls, category, timeout_seconds, idle_seconds, protocol,
  only_operations, operation_terms, docs_url, health_path, upstream_headers, upstream_query, signing_keys, forward_headers,
  blocked_buyers, status, created_at,
  (SELECT a.status <> 'active' FROM accounts a WHERE a.id = provider_id) AS is_suspended,
  (extract(epoch FROM updated_at) * 1000000)::bigint AS version, ${hash} AS row_hash,
  ${nextColumns(sql)}`;

function toListing(row: Row): Listing {
  const listing: Listing = {
    id: row.id,
    providerId: row.provider_id,
    name: row.name,
    description: row.description,
    endpoint: row.endpoint,
    priceMicros: row.price,
    maxPriceMicros: row.max_price,
    freeCalls: row.free_calls,
    category: row.category,
    timeoutSeconds: row.timeout_seconds,
    idleSeconds: row.idle_seconds,
    protocol: row.protocol,
    onlyOperations: row.only_operations,
    operationTerms: row.operation_terms,
    next: nextOf(row),
    termsFromMs: null,
    docsUrl: row.docs_url,
    healthPath: row.health_path,
    upstreamHeaders: row.upstream_headers,
    upstreamQuery: row.upstream_query,
    signingKeys: row.signing_keys,
    forwardHeaders: row.forward_headers,
    blockedBuyers: row.blocked_buyers,
    status: row.status,
    isSuspended: row.is_suspended,
    createdAtMs: row.created_at.getTime(),
    updatedAtMicros: row.version,
    rowHash: row.row_hash,
  };
  return row.next_counts ? withNextTerms(listing) : listing;
}

const firstListing = (rows: readonly Row[]): Listing | null => (rows[0] === undefined ? null : toListing(rows[0]));

/**
 * Reads a listing after it was written. A statement that writes a listing may have to wait while its account is suspended or
 * resumed, and even then sees the account as it was before. A new statement sees the present state of both.
 */
const readAgain = async (sql: Tx, written: readonly { readonly id: string }[]): Promise<Listing | null> =>
  written[0] === undefined ? null : selectListing(sql, written[0].id);

/** Adds a listing, active unless it says otherwise, and announces it. Makes the id, unless the caller needs to know it before. */
export async function insertListing(
  sql: Tx,
  listing: ListingFields &
    Pick<ListingPatch, 'status'> & { readonly providerId: string; readonly protocol: Protocol; readonly id?: string },
): Promise<Listing> {
  const added = await sql<{ id: string }[]>`
    WITH added AS (
      INSERT INTO services (id, provider_id, name, description, endpoint, price, max_price, free_calls, category,
                            timeout_seconds, idle_seconds, protocol, only_operations, operations, operation_terms,
                            docs_url, health_path, upstream_headers, upstream_query, signing_keys, forward_headers, status)
      VALUES (${listing.id ?? uuidv7()}, ${listing.providerId}, ${listing.name}, ${listing.description},
              ${listing.endpoint}, ${listing.priceMicros}, ${listing.maxPriceMicros}, ${listing.freeCalls}, ${listing.category},
              ${listing.timeoutSeconds}, ${listing.idleSeconds}, ${listing.protocol}, ${listing.onlyOperations},
              ${listing.operations?.json ?? null}::text::json, ${listing.operations?.terms ?? null},
              ${listing.docsUrl}, ${listing.healthPath}, ${listing.upstreamHeaders}, ${listing.upstreamQuery},
              ${listing.signingKeys}, ${listing.forwardHeaders}, ${listing.status ?? 'active'})
      RETURNING id)
    SELECT id, pg_notify(${CHANNEL}, id::text) FROM added`;
  return (await readAgain(sql, added)) as Listing;
}

/** Whose listings may be changed: those of one account, or anybody's (an admin's right). */
export type Scope = { readonly providerId: string } | 'any';

const inScope = (sql: Tx, scope: Scope) => (scope === 'any' ? sql`` : sql`AND provider_id = ${scope.providerId}`);

const hasVersion = (sql: Tx, version: number | undefined) =>
  version === undefined ? sql`` : sql`AND (extract(epoch FROM updated_at) * 1000000)::bigint = ${version}`;

/**
 * The next `updated_at` of a row. It is later than the present value even if the clock was set back. Evaluated with the row locked.
 */
const nextVersion = (sql: Tx) => sql`greatest(clock_timestamp(), updated_at + interval '1 microsecond')`;

/** Whether the patch contains anything that decides what a call costs. */
export const changesTerms = ({ priceMicros, maxPriceMicros, freeCalls, ...more }: ListingPatch): boolean =>
  [priceMicros, maxPriceMicros, freeCalls, more.onlyOperations, more.operations].some((field) => field !== undefined);

/**
 * Changes the given fields of a listing that is not removed, and announces it. If a call may then cost more, everything that
 * decides the cost of calls counts only after the notice; the other fields count at once.
 *
 * @param sql a transaction, or a pool; with a pool, this begins a transaction where it needs one
 * @param patch   must have at least one field
 * @param version the listing's `updatedAtMicros` on which the change is based; absent: any
 * @param noticeSeconds 0: everything counts at once
 * @returns the changed listing, or null if there is none with this id in scope, or it has another version
 */
export async function updateListing(
  sql: Sql | Tx,
  id: string,
  patch: ListingPatch,
  scope: Scope,
  { version, noticeSeconds = 0 }: { readonly version?: number; readonly noticeSeconds?: number } = {},
): Promise<Listing | null> {
  const { name, description, endpoint, category, timeoutSeconds, status, ...more } = patch;
  const { idleSeconds, docsUrl, healthPath, blockedBuyers, ...secretsAndTerms } = more;
  const { upstreamHeaders, upstreamQuery, signingKeys, forwardHeaders, ...others } = secretsAndTerms;
  const { priceMicros, maxPriceMicros, freeCalls, onlyOperations, operations, ...rest } = others;
  // Does not compile if a listing has a new field that is not stored here.
  rest satisfies Record<string, never>;
  const change = async (tx: Sql | Tx, terms: Fragment) => tx<{ id: string }[]>`
    WITH changed AS (
      UPDATE services SET
        name = coalesce(${name ?? null}, name),
        description = coalesce(${description ?? null}, description),
        endpoint = coalesce(${endpoint ?? null}, endpoint),
        category = coalesce(${category ?? null}, category),
        timeout_seconds = coalesce(${timeoutSeconds ?? null}, timeout_seconds)
        ${idleSeconds === undefined ? sql`` : sql`, idle_seconds = ${idleSeconds}`}
        ${docsUrl === undefined ? sql`` : sql`, docs_url = ${docsUrl}`}
        ${healthPath === undefined ? sql`` : sql`, health_path = ${healthPath}`}
        ${upstreamHeaders === undefined ? sql`` : sql`, upstream_headers = ${upstreamHeaders}`}
        ${upstreamQuery === undefined ? sql`` : sql`, upstream_query = ${upstreamQuery}`}
        ${signingKeys === undefined ? sql`` : sql`, signing_keys = ${signingKeys}`}
        ${forwardHeaders === undefined ? sql`` : sql`, forward_headers = ${forwardHeaders}`}
        ${blockedBuyers === undefined ? sql`` : sql`, blocked_buyers = ${blockedBuyers}`},
        status = coalesce(${status ?? null}, status),
        ${terms}
        updated_at = ${nextVersion(tx)}
      WHERE id = ${id} AND status <> 'removed' ${inScope(sql, scope)} ${hasVersion(sql, version)}
      RETURNING id)
    SELECT id, pg_notify(${CHANNEL}, id::text) FROM changed`;
  const terms: TermsChange = { priceMicros, maxPriceMicros, freeCalls, onlyOperations, operations };
  const changeAll = async (tx: Tx) => change(tx, (await termsAssignments(tx, id, terms, noticeSeconds)).set);
  let changed: readonly { readonly id: string }[];
  if (!changesTerms(patch)) changed = await change(sql, sql``);
  else changed = await ('begin' in sql ? sql.begin(changeAll) : changeAll(sql));
  return readAgain(sql, changed);
}

/**
 * Sets the status `removed`, and announces it. The row stays, because usage and earnings refer to it; its secrets do not.
 *
 * @returns the listing, or null if there is none with this id in scope, or it was already removed
 */
export async function removeListing(sql: Tx, id: string, scope: Scope): Promise<Listing | null> {
  return firstListing(
    await sql<Row[]>`
      WITH removed AS (
        UPDATE services SET status = 'removed', upstream_headers = NULL, upstream_query = NULL, signing_keys = NULL,
          blocked_buyers = NULL, updated_at = ${nextVersion(sql)}
        WHERE id = ${id} AND status <> 'removed' ${inScope(sql, scope)}
        RETURNING *)
      SELECT ${columns(sql, sql`0::bigint`)}, pg_notify(${CHANNEL}, id::text) FROM removed`,
  );
}

/**
 * Makes all gateways read the account's listings again, once the transaction `tx` that suspends or resumes the account commits.
 * Call it after `updateAccountStatus`, which locks the account, so that no listing is added at the same time. Each listing that is
 * not removed gets a new version, so that no earlier reading can replace the new one in a gateway.
 */
export async function announceListingsOf(tx: Tx, providerId: string): Promise<void> {
  await tx`
    WITH changed AS (
      UPDATE services SET updated_at = ${nextVersion(tx)}
      WHERE provider_id = ${providerId} AND status <> 'removed'
      RETURNING id)
    SELECT pg_notify(${CHANNEL}, id::text) FROM changed`;
}

/** Endpoint of a listing whose account was closed. Names under `.invalid` never resolve (RFC 6761 §6.4). */
const NO_ENDPOINT = 'http://closed.invalid/';

/**
 * Removes all listings of an account that is being closed, and erases everything that may identify its owner, also in listings that
 * were removed before. Their names stay: the usage of their buyers shows them.
 *
 * @returns how many were removed now
 */
export async function closeListingsOf(tx: Tx, providerId: string): Promise<number> {
  const removed = await tx<object[]>`
    WITH old AS (
      SELECT id, status FROM services WHERE provider_id = ${providerId} FOR NO KEY UPDATE),
    closed AS (
      UPDATE services s SET status = 'removed', description = '', endpoint = ${NO_ENDPOINT}, only_operations = false,
                            operations = NULL, operation_terms = NULL,
                            upstream_headers = NULL, upstream_query = NULL, signing_keys = NULL,
                            forward_headers = NULL, blocked_buyers = NULL,
                            docs_url = NULL, health_path = NULL, next_from = NULL, next_price = NULL,
                            next_max_price = NULL, next_free_calls = NULL, next_only_operations = NULL, next_operations = NULL,
                            next_operation_terms = NULL,
                            updated_at = ${nextVersion(tx)}
      FROM old WHERE s.id = old.id
      RETURNING s.id, old.status AS before)
    SELECT pg_notify(${CHANNEL}, id::text) FROM closed WHERE before <> 'removed'`;
  // A separate statement, because it must see results about an endpoint that were stored while the first one waited for its locks.
  await tx`
    UPDATE service_watch w SET endpoint = NULL, reachable = NULL, failure = NULL, health_asked = NULL
    FROM services s WHERE s.provider_id = ${providerId} AND w.service_id = s.id`;
  return removed.length;
}

/** One listing in any status, or null. */
export async function selectListing(sql: Tx, id: string): Promise<Listing | null> {
  return firstListing(await sql<Row[]>`SELECT ${columns(sql)} FROM services WHERE id = ${id}`);
}

/** One listing in any status, or null. Nobody else can change it until the transaction ends. */
export async function lockListing(tx: Tx, id: string): Promise<Listing | null> {
  return firstListing(await tx<Row[]>`SELECT ${columns(tx)} FROM services WHERE id = ${id} FOR NO KEY UPDATE`);
}

/** The operations of a listing that count now, as its provider wrote them: JSON text of `Operation[]`, empty if there are none. */
export async function selectOperationsText(sql: Sql | Tx, id: string): Promise<string> {
  const rows = await sql<{ operations: string | null }[]>`
    SELECT CASE WHEN next_from <= clock_timestamp() THEN next_operations ELSE operations END::text AS operations
    FROM services WHERE id = ${id}`;
  return rows[0]?.operations ?? '[]';
}

/** The operations that the provider wrote last: those that are announced, if there are any, otherwise those that count now. */
export async function selectLatestOperations(sql: Sql | Tx, id: string): Promise<readonly Operation[]> {
  const rows = await sql<{ operations: string | null }[]>`
    SELECT CASE WHEN next_from IS NULL THEN operations ELSE next_operations END::text AS operations
    FROM services WHERE id = ${id}`;
  return JSON.parse(rows[0]?.operations ?? '[]') as Operation[];
}

/** Listings that have secrets, by ascending id. */
export async function selectListingsWithSecrets(sql: Sql, afterId: string | null, limit: number): Promise<Listing[]> {
  const rows = await sql<Row[]>`
    SELECT ${columns(sql)} FROM services
    WHERE (upstream_headers IS NOT NULL OR upstream_query IS NOT NULL OR signing_keys IS NOT NULL)
      ${afterId === null ? sql`` : sql`AND id > ${afterId}`}
    ORDER BY id LIMIT ${limit}`;
  return rows.map(toListing);
}

/** The listings with these ids, in any status, including those of suspended accounts. */
export async function selectListings(sql: Sql, ids: readonly string[]): Promise<Listing[]> {
  const rows = await sql<Row[]>`SELECT ${columns(sql)} FROM services WHERE id = ANY(${ids}::uuid[])`;
  return rows.map(toListing);
}

/**
 * For each bucket (`bucketOf`) with listings that a catalog should have: the sum of their row hashes, modulo 2^48. A sum differs
 * after any change of one of them, even a change made by hand in the database, because each writing transaction leaves its own xmin
 * in the row. It also differs after an account was suspended, resumed or closed by hand, which changes no listing. Two changes
 * cancel each other with a probability of 2^-40.
 *
 * @returns the sums, and the time of Postgres, by which announced terms begin to count
 */
export async function selectBucketSums(
  sql: Sql,
): Promise<{ readonly sums: Map<number, number>; readonly nowMs: number }> {
  // One row even if there are no listings, because the time is needed anyway.
  const rows = await sql<{ sums: Record<string, number> | null; nowMs: number }[]>`
    SELECT json_object_agg(bucket, sum) AS sums, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS "nowMs"
    FROM (
      SELECT ${bucket(sql)} AS bucket, (sum(${rowHash(sql)}) % 281474976710656)::bigint AS sum
      FROM services
      WHERE status <> 'removed'
        AND NOT EXISTS (SELECT FROM accounts a WHERE a.id = provider_id AND a.status <> 'active')
      GROUP BY bucket
    ) AS sums`;
  const { sums, nowMs } = rows[0] as { sums: Record<string, number> | null; nowMs: number };
  return { sums: new Map(Object.entries(sums ?? {}).map(([bucket, sum]) => [Number(bucket), sum])), nowMs };
}

/**
 * Up to `limit` listings with ids after `afterId` (null: from the first), by id. Leaves out removed ones, but not suspended ones.
 *
 * @param buckets  only listings of these buckets; null: all
 */
export async function selectCatalogPage(
  sql: Sql,
  buckets: readonly number[] | null,
  afterId: string | null,
  limit: number,
): Promise<Listing[]> {
  const rows = await sql<Row[]>`
    SELECT ${columns(sql)} FROM services
    WHERE status <> 'removed' ${afterId === null ? sql`` : sql`AND id > ${afterId}`}
      ${buckets === null ? sql`` : sql`AND ${bucket(sql)} = ANY(${buckets}::int[])`}
    ORDER BY id LIMIT ${limit}`;
  return rows.map(toListing);
}

type ListingFilter = {
  readonly status: ListingStatus | null;
  readonly providerId: string | null;
  readonly category: string | null;
  /** A part of the name, in upper or lower case. */
  readonly text: string | null;
};

/** Up to `limit` listings with ids before `beforeId` (null: the newest), newest first. Includes removed and suspended ones. */
export async function selectListingsBy(
  sql: Tx,
  { status, providerId, category, text }: ListingFilter,
  beforeId: string | null,
  limit: number,
): Promise<Listing[]> {
  const rows = await sql<Row[]>`
    SELECT ${columns(sql)} FROM services
    WHERE true ${status === null ? sql`` : sql`AND status = ${status}`}
      ${providerId === null ? sql`` : sql`AND provider_id = ${providerId}`}
      ${category === null ? sql`` : sql`AND category = ${category}`}
      ${text === null ? sql`` : sql`AND strpos(lower(name), lower(${text})) > 0`}
      ${beforeId === null ? sql`` : sql`AND id < ${beforeId}`}
    ORDER BY id DESC LIMIT ${limit}`;
  return rows.map(toListing);
}

/** Up to `limit` listings of a provider with ids before `beforeId` (null: the newest), newest first. Leaves out removed ones. */
export async function selectListingsOf(
  sql: Sql,
  providerId: string,
  beforeId: string | null,
  limit: number,
): Promise<Listing[]> {
  const rows = await sql<Row[]>`
    SELECT ${columns(sql)} FROM services
    WHERE provider_id = ${providerId} AND status <> 'removed' ${beforeId === null ? sql`` : sql`AND id < ${beforeId}`}
    ORDER BY id DESC LIMIT ${limit}`;
  return rows.map(toListing);
}
