import { selectListing } from '../catalog/sql.js';
import { ApiError } from '../errors.js';
import { keyOf } from '../keys/caller.js';
import { EXAMPLE, UUID } from '../openapi/schemas.js';
import { isUuid } from '../platform/ids.js';
// Which service a request names, and whether its sender may manage it.
export const SERVICE_PARAM = { id: { description: 'The service', schema: UUID, example: EXAMPLE.serviceId } };
/**
 * The error for a change that matched no listing which this key may change. A removed listing never comes back: not even an admin
 * can change it.
 */
export async function refusal(sql, id) {
    const listing = await selectListing(sql, id);
    if (listing === null || listing.status === 'removed')
        return notFound();
    return new ApiError('forbidden', 'This service belongs to another account.');
}
export const notFound = () => new ApiError('service_not_found', 'There is no service with this id.');
/** Who sends a request to change a listing. */
export const writerOf = ({ caller, requestId }) => ({ key: keyOf(caller), requestId });
export function mayManage(caller, listing) {
    return caller.kind === 'key' && (caller.key.role === 'admin' || caller.key.accountId === listing.providerId);
}
/** The id in the path. Only a lower-case UUID names a service, as in the path of a call; Postgres might refuse other text. */
export function idOf({ params }) {
    const id = params.id ?? '';
    if (!isUuid(id))
        throw notFound();
    return id;
}
//# sourceMappingURL=named-service.js.map