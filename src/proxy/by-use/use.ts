import type { CallTerms } from '../../admission/call-terms.ts';
import type { Admitted } from '../../admission/commands.ts';
import type { ResponseHead } from '../../upstream/index.ts';
import { reportIn } from './report.ts';

/**
 * What a call that is priced by use will be charged: what its service reports, at most what is held, and the price if it reports
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
  /** Only the head can say that no trailers will come. */
  #mayHaveTrailers = true;

  constructor({ amountMicros, freeTier }: Admitted, { priceMicros }: CallTerms) {
    this.heldMicros = amountMicros;
    this.#isFree = freeTier;
    this.#priceMicros = priceMicros;
  }

  /** Takes the report out of the response head and then out of the trailers: the first that is valid counts. */
  read(fields: readonly string[]): void {
    this.#reportedMicros ??= reportIn(fields);
  }

  readHead({ headers, framing }: Pick<ResponseHead, 'headers' | 'framing'>): void {
    this.read(headers);
    this.#mayHaveTrailers = framing === 'chunked';
  }

  /** Whether it is still open what the call will cost. Where nothing is held it costs nothing, whatever is reported. */
  get isOpen(): boolean {
    return this.#reportedMicros === null && this.heldMicros > 0;
  }

  /** Whether the rest of the response can still say what the call costs. */
  get awaitsReport(): boolean {
    return this.isOpen && this.#mayHaveTrailers;
  }

  /**
   * What a response that was read to its end is settled with. It may be more than is held: the record shows that. Null for a free
   * call, which has no hold to capture from.
   */
  get capturedMicros(): number | null {
    return this.#isFree ? null : (this.#reportedMicros ?? this.#priceMicros);
  }

  /** What the call then costs. */
  get chargedMicros(): number {
    return Math.min(this.capturedMicros ?? 0, this.heldMicros);
  }
}
