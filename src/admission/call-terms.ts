import { freeField } from '../platform/redis-keys.ts';
import { bulk } from '../platform/trip-encoder.ts';

type Listing = {
  readonly id: string;
  readonly providerId: string;
  readonly priceMicros: number;
  /** 0: the listing has no free tier. */
  readonly freeCalls: number;
  /** The most that a call priced by use may cost; null or absent if the price is fixed. */
  readonly maxPriceMicros?: number | null;
};

/**
 * An amount that exceeds every wallet and everything that Redis can subtract. So admission refuses it like any other that is not
 * covered: before anything is taken (docs/decisions/0069-a-free-call-only-is-a-call-that-nobody-can-pay.md).
 */
const UNPAYABLE = '9'.repeat(20);

/**
 * What a call of a listing costs, encoded for batch.lua. Make it once per version of the listing: all its calls share it.
 *
 * A call priced by use (`maxPriceMicros` not null) is settled with the cost that its service reports. Its hold takes the most that
 * this may be: the amount that the service is authorised to charge.
 */
export class CallTerms {
  readonly serviceId: string;
  readonly providerId: string;
  /** The price: what the call costs unless its service reports another amount. Micro-USD, like all amounts here. */
  readonly priceMicros: number;
  readonly maxPriceMicros: number | null;
  /** What the hold of a call takes if the call is not free: the price, or the authorised amount of a call priced by use. */
  readonly heldMicros: number;
  /** That amount, free calls and wallet field, encoded: the arguments of command 'P' in batch.lua. */
  readonly args: string;
  /** The listing's part of the hold's text. */
  readonly hold: string;
  /** The last part of the hold's text, with a tab before it: '' or `name=value` fields (ledger/usage-event.ts). */
  readonly holdEnd: string;
  /** Whether one of the listing's free calls may cover the call: it has some, and the call costs something. */
  readonly hasFreeCalls: boolean;
  /** Whether only a free call may cover the call: no wallet covers the amount in these terms. */
  readonly isFreeOnly: boolean;
  readonly #listing: Listing;

  /** @param ceilingMicros the most that the caller pays; not below the price. It matters only if the call is priced by use */
  constructor(listing: Listing, ceilingMicros: number = Number.MAX_SAFE_INTEGER, isFreeOnly = false) {
    const { id, providerId, priceMicros, freeCalls, maxPriceMicros = null } = listing;
    this.serviceId = id;
    this.providerId = providerId;
    this.priceMicros = priceMicros;
    this.maxPriceMicros = maxPriceMicros;
    this.heldMicros = maxPriceMicros === null ? priceMicros : Math.min(maxPriceMicros, ceilingMicros);
    this.hasFreeCalls = freeCalls > 0 && this.heldMicros > 0;
    this.isFreeOnly = isFreeOnly;
    const taken = isFreeOnly ? UNPAYABLE : String(this.heldMicros);
    this.args = bulk(taken) + bulk(String(freeCalls)) + bulk(freeField(id));
    this.hold = `${id}\t${providerId}`;
    this.holdEnd = holdEndOf(maxPriceMicros, this.heldMicros);
    this.#listing = listing;
  }

  /**
   * The terms of a call whose caller pays at most this amount. It is not below the price, unless the caller owns the listing and
   * pays nothing.
   */
  upTo(ceilingMicros: number): CallTerms {
    return ceilingMicros < this.heldMicros && this.maxPriceMicros !== null
      ? new CallTerms(this.#listing, ceilingMicros)
      : this;
  }

  /**
   * The least that the hold of a child key's call may take, encoded. It is not below the price, even if the key's budgets leave
   * little.
   */
  get leastArg(): string {
    return bulk(this.isFreeOnly ? UNPAYABLE : String(Math.min(this.priceMicros, this.heldMicros)));
  }

  /** The terms of a call that only a free call may cover. The most that its service may charge stays the same. */
  freeOnly(): CallTerms {
    return new CallTerms(this.#listing, this.heldMicros, true);
  }
}

function holdEndOf(maxPriceMicros: number | null, heldMicros: number): string {
  if (maxPriceMicros === null) return '';
  // A free call's hold takes nothing, so only this field says what the service was told.
  return `\tcap=${maxPriceMicros}${heldMicros < maxPriceMicros ? `\tceiling=${heldMicros}` : ''}`;
}
