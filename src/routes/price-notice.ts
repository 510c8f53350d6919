import type { Listing } from '../catalog/listing.ts';
import type { CalledServices } from '../ledger/called-services.ts';

type Of = Pick<Listing, 'id' | 'providerId'>;

/**
 * How long a change of a listing is announced after which a call may cost more. A listing that no other account has ever called
 * changes at once, because nobody needs the notice.
 */
export class PriceNotice {
  readonly #seconds: number;
  readonly #called: Pick<CalledServices, 'has' | 'hasStored'>;

  constructor(seconds: number, called: Pick<CalledServices, 'has' | 'hasStored'>) {
    this.#seconds = seconds;
    this.#called = called;
  }

  /**
   * The notice for a change of the listing now. @throws ApiError `unavailable` when Redis is away, which may have calls that are
   * not stored
   */
  async secondsFor({ id, providerId }: Of): Promise<number> {
    return this.#seconds > 0 && (await this.#called.has({ id, providerId })) ? this.#seconds : 0;
  }

  /** The notice as a page predicts it: a call of the last second may be missing. */
  async foretold({ id }: Of): Promise<number> {
    return this.#seconds > 0 && (await this.#called.hasStored(id)) ? this.#seconds : 0;
  }
}
