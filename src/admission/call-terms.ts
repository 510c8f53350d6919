import { freeField } from '../platform/redis-keys.ts';
import { bulk } from '../platform/trip-encoder.ts';

/** What a listing says about its calls, and how it travels: the same for all of them, so make it once a version of the listing. */
export class CallTerms {
  readonly serviceId: string;
  readonly providerId: string;
  /** Micro-USD. */
  readonly priceMicros: number;
  /** Price, free calls and wallet field: the arguments of 'P' in batch.lua. */
  readonly args: string;
  /** Its part of the hold. */
  readonly hold: string;

  /** @param listing `freeCalls` 0: none */
  constructor(listing: {
    readonly id: string;
    readonly providerId: string;
    readonly priceMicros: number;
    readonly freeCalls: number;
  }) {
    this.serviceId = listing.id;
    this.providerId = listing.providerId;
    this.priceMicros = listing.priceMicros;
    this.args = bulk(String(listing.priceMicros)) + bulk(String(listing.freeCalls)) + bulk(freeField(listing.id));
    this.hold = `${listing.id}\t${listing.providerId}`;
  }
}
