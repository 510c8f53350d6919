import type { ListingWriter } from '../accounts/listing-acts.ts';
import type { Listing } from '../catalog/listing.ts';
import { selectListing } from '../catalog/sql.ts';
import { ApiError } from '../errors.ts';
import type { ApiRequest } from '../http/route.ts';
import { type Caller, keyOf } from '../keys/caller.ts';
import { EXAMPLE, UUID } from '../openapi/schemas.ts';
import { isUuid } from '../platform/ids.ts';
import type { Sql } from '../platform/postgres.ts';

// Which service a request names, and whether its sender may manage it.

export const SERVICE_PARAM = { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } };

/**
 * The error for a change that found no listing that this key may change. A removed listing never comes back: not even an admin can
 * change it.
 */
export async function refusal(sql: Sql, id: string): Promise<ApiError> {
  const listing = await selectListing(sql, id);
  if (listing === null || listing.status === 'removed') return notFound();
  return new ApiError('forbidden', 'This service belongs to another account.');
}

export const notFound = (): ApiError => new ApiError('service_not_found', 'There is no service with this id.');

/** The sender of a request to change a listing. */
export const writerOf = ({ caller, requestId }: ApiRequest): ListingWriter => ({ key: keyOf(caller), requestId });

export function mayManage(caller: Caller, listing: Listing): boolean {
  if (caller.kind !== 'key') return false;
  const { role, accountId, ancestors } = caller.key;
  return role === 'admin' || (accountId === listing.providerId && ancestors.length === 0);
}

/** The id in the path. Only a lower-case UUID names a service, as in the path of a call; Postgres might refuse other text. */
export function idOf({ params }: ApiRequest): string {
  const id = params.id ?? '';
  if (!isUuid(id)) throw notFound();
  return id;
}
