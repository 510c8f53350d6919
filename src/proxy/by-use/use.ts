import type { CallTerms } from '../../admission/call-terms.ts';
import type { Admitted } from '../../admission/commands.ts';
import type { ResponseHead } from '../../upstream/index.ts';
import { reportIn } from './report.ts';

/**
 * What a call priced by use will be charged: the cost that its service reports, at most the hold; or the price if it reports
 * nothing.
 *
 * Tested by test/proxy/by-use/use.test.ts.
 */
export class Use {
  /** What the hold took: 0 for a free call. */
  readonly heldMicros: number;
  readonly #priceMicros: number;
  #reportedMicros: number | null = null;
  readonly #isFree: boolean;
  /** Only the head tells that no trailers will come. */
  #mayHaveTrailers = true;

  constructor({ amountMicros, freeTier }: Admitted, { priceMicros }: CallTerms) {
    this.heldMicros = amountMicros;
    this.#isFree = freeTier;
    this.#priceMicros = priceMicros;
  }

  /** Takes the report from the response head, and then from the trailers: the first valid one counts. */
  read(fields: readonly string[]): void {
    this.#reportedMicros ??= reportIn(fields);
  }

  readHead({ headers, framing }: Pick<ResponseHead, 'headers' | 'framing'>): void {
    this.read(headers);
    this.#mayHaveTrailers = framing === 'chunked';
  }

  /** Whether the cost of the call is still open. A call that holds nothing costs nothing, whatever is reported. */
  get isOpen(): boolean {
    return this.#reportedMicros === null && this.heldMicros > 0;
  }

  /** Whether the rest of the response can still tell what the call costs. */
  get awaitsReport(): boolean {
    return this.isOpen && this.#mayHaveTrailers;
  }

  /**
   * The amount with which a response that was read to its end is settled. It may exceed the hold: the record shows that. Null for a
   * free call, which has no hold to capture from.
   */
  get capturedMicros(): number | null {
    return this.#isFree ? null : (this.#reportedMicros ?? this.#priceMicros);
  }

  /** What the call then costs. */
  get chargedMicros(): number {
    return Math.min(this.capturedMicros ?? 0, this.heldMicros);
  }
}
