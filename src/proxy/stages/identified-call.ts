import type { Listing } from '../../catalog/listing.ts';
import { ApiError, suspendedError, unauthorizedError, unavailableError } from '../../errors.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import { type Locations, responseHeaderLines } from '../header-rules.ts';
import type { Offer } from '../offers.ts';
import { locationForCaller } from '../redirects.ts';
import { blockedError, faultError, notOwnError, notPermittedError } from '../refusals.ts';
import { parseTarget, type Target } from '../target.ts';
import type { ArrivedCall } from './arrived-call.ts';

/** A call whose key and listing are known. This key may call this listing. */
export class IdentifiedCall implements Locations {
  readonly call: ArrivedCall;
  readonly key: KeyRecord;
  readonly target: Target;
  readonly listing: Listing;
  readonly offer: Offer;
  /** Providers call their own listings for free, to try them, even while these are paused. */
  readonly isOwn: boolean;

  /**
   * @param key  null if the caller has no valid one
   * @throws ApiError, which the caller gets
   */
  constructor(call: ArrivedCall, key: KeyRecord | null) {
    const { head, options } = call;
    if (head.fault !== null) throw faultError(head.fault);
    if (key === null) throw unauthorizedError();
    if (key.accountStatus !== 'active') throw suspendedError(key.suspensionReason);
    const target = parseTarget(head.path);
    const listing = options.catalog.get(target.serviceId);
    if (listing === undefined) throw options.catalog.ready() ? new ApiError('service_not_found') : unavailableError();
    if (key.services !== null && !key.services.has(listing.id)) throw notPermittedError();
    const isOwn = key.accountId === listing.providerId;
    if (!isOwn) {
      if (listing.status !== 'active') throw new ApiError('service_not_found');
      if (key.role === 'provider') throw notOwnError();
    }
    const offer = options.offers.of(listing);
    if (offer.blocked !== null && !isOwn) {
      if (offer.blocked.has(options.pseudonyms.ofAccount(key.accountId, listing.providerId))) throw blockedError();
    }
    this.call = call;
    this.key = key;
    this.target = target;
    this.listing = listing;
    this.offer = offer;
    this.isOwn = isOwn;
  }

  get isMcp(): boolean {
    return this.offer.tools !== null;
  }

  /** Whether the service got credentials, all of them added by its listing. */
  get hasListingCredentialsOnly(): boolean {
    return this.offer.headers?.showsListingCredentialsOnly(this.call.head.headers) ?? false;
  }

  /** Header lines for the caller, made from the service's response headers. */
  responseLines(headers: readonly string[]): string {
    const { query } = this.offer;
    return responseHeaderLines(query === null ? headers : query.passing(headers), this);
  }

  /** Where a `Location` or `Content-Location` of the service leads the caller. */
  location(value: string): string | null {
    const { destination, basePath, query: added } = this.offer;
    const { query, headers } = this.call.head;
    const called = { origin: destination.origin, basePath, target: this.target, query, headers };
    const location = locationForCaller(value, called);
    return added === null || location === null ? location : added.hiddenIn(location);
  }
}
