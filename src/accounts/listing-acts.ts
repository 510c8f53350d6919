import { isDeepStrictEqual } from 'node:util';
import { NOTHING_BESIDE } from '../catalog/beside.ts';
import type { Listing } from '../catalog/listing.ts';
import { fullItem } from '../catalog/present.ts';
import { lockListing, type Scope } from '../catalog/sql.ts';
import type { KeyRecord } from '../keys/caller.ts';
import { microsToUsd } from '../platform/money.ts';
import type { Sql, Tx } from '../platform/postgres.ts';
import { type Act, actorOf, recordAct } from './audit.ts';

/** `updateListing` or `removeListing`: writes a listing, if the scope has it, and returns its new state. */
export type WriteListing = (sql: Tx, scope: Scope) => Promise<Listing | null>;

export type ListingWriter = { readonly key: KeyRecord; readonly requestId: string };

/**
 * Changes a listing of the key's own account; an admin's key may change any listing. An admin's change of another account's listing
 * is recorded.
 */
export function writeListing(sql: Sql, by: ListingWriter, id: string, write: WriteListing): Promise<Listing | null> {
  const { role, accountId } = by.key;
  if (role !== 'admin') return write(sql, { providerId: accountId });
  return writeAsOperator(sql, by, id, write, ({ providerId }) => providerId !== accountId);
}

/**
 * Shows what a write would do to a listing, with the rights of `changeListing`. Postgres checks the rules as for a real write. Then
 * everything is rolled back, so that nobody is told and nothing is recorded.
 *
 * @param read reads what the caller wants to know while the change is in effect
 */
export async function tryListing<T>(
  sql: Sql,
  { key }: ListingWriter,
  write: WriteListing,
  read: (tx: Tx, listing: Listing) => Promise<T>,
): Promise<T | null> {
  const scope: Scope = key.role === 'admin' ? 'any' : { providerId: key.accountId };
  let found: T | null = null;
  const takeBack = new Error('tried');
  try {
    await sql.begin(async (tx) => {
      const listing = await write(tx, scope);
      if (listing !== null) found = await read(tx, listing);
      throw takeBack;
    });
  } catch (error) {
    if (error !== takeBack) throw error;
  }
  return found;
}

/** Changes any listing, and records it if `isAct` says so. */
export function writeAsOperator(
  sql: Sql,
  { key, requestId }: ListingWriter,
  id: string,
  write: WriteListing,
  isAct: (before: Listing) => boolean,
): Promise<Listing | null> {
  return sql.begin(async (tx) => {
    const before = await lockListing(tx, id);
    if (before === null) return null;
    const after = await write(tx, 'any');
    if (after !== null && isAct(before)) await recordAct(tx, listingAct(before, after, actorOf(key, requestId)));
    return after;
  });
}

function listingAct(before: Listing, after: Listing, by: ReturnType<typeof actorOf>): Act {
  const [old, now] = [fieldsOf(before), fieldsOf(after)];
  const names = Object.keys({ ...old, ...now }).filter((name) => !isDeepStrictEqual(old[name], now[name]));
  const pick = (fields: Record<string, unknown>): Record<string, unknown> =>
    Object.fromEntries(names.map((name) => [name, fields[name] ?? null]));
  const action = after.status === 'removed' ? 'service.remove' : 'service.change';
  const subject = { subjectType: 'service', subjectId: after.id } as const;
  // A new value under an old name shows in no field.
  const isSealedAnew =
    before.upstreamHeaders !== after.upstreamHeaders ||
    before.upstreamQuery !== after.upstreamQuery ||
    before.signingKeys !== after.signingKeys;
  return {
    ...by,
    action,
    ...subject,
    before: pick(old),
    after: { ...pick(now), ...(isSealedAnew && { secrets: 'changed' }) },
  };
}

/** Fields that are derived from others, or that nobody sets. */
const DERIVED = ['price_label', 'free_calls_label', 'quality', 'proxy_path', 'provider', 'health', 'updated_at'];

/**
 * The fields of a listing that can be changed, as the API shows them. Of secrets only the names, of operations only what calls
 * need.
 */
function fieldsOf(listing: Listing): Record<string, unknown> {
  const shown = fullItem('owner', { listing, ...NOTHING_BESIDE, language: 'en' });
  for (const name of DERIVED) delete shown[name];
  return listing.operationTerms === null ? shown : { ...shown, operations: operationsOf(listing.operationTerms) };
}

/** [method, path, price, max price] or [tool, price, max price] of each, prices in USD, or null where none is stated. */
function operationsOf(terms: string): unknown[][] {
  return (JSON.parse(terms) as unknown[][]).map((term) =>
    term.map((part) => (typeof part === 'number' ? microsToUsd(part) : part)),
  );
}
