import { freeField } from '../platform/redis-keys.ts';
import { bulk } from '../platform/trip-encoder.ts';

/** What a call of a listing costs, encoded for batch.lua. Make it once per version of the listing: all its calls share it. */
export class CallTerms {
  readonly serviceId: string;
  readonly providerId: string;
  /** Micro-USD. */
  readonly priceMicros: number;
  /** Price, free calls and wallet field, encoded: the arguments of command 'P' in batch.lua. */
  readonly args: string;
  /** The listing's part of the hold's text. */
  readonly hold: string;

  /** @param listing with `freeCalls` 0, the listing has no free tier */
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
