import type { Language } from '../languages.ts';
import type { Entry } from './entry.ts';

/**
 * Maximum bytes of kept pieces. All services in one language take 45 MB at 100 000 listings. Beyond the bound, the pieces used
 * least recently are dropped, and made again on demand.
 */
const MAX_BYTES = 67_108_864;

/**
 * The services of a chunk as JSON, one text per language for all callers. A change of a listing makes a new chunk, so a piece stays
 * right for ever.
 */
export class PieceCache {
  /** Renders services as JSON, with a comma before the first. */
  readonly #write: (entries: readonly Entry[], language: Language) => string;
  /** Least recently used first. */
  readonly #pieces = new Map<readonly Entry[], Map<Language, Uint8Array>>();
  #bytes = 0;

  constructor(write: (entries: readonly Entry[], language: Language) => string) {
    this.#write = write;
  }

  /**
   * The services, with a comma before the first.
   *
   * @param keep false if the entries are not a chunk of an order: nobody else will need exactly these
   */
  get(entries: readonly Entry[], language: Language, keep: boolean): Uint8Array {
    if (!keep) return Buffer.from(this.#write(entries, language));
    const byLanguage = this.#pieces.get(entries) ?? new Map<Language, Uint8Array>();
    this.#pieces.delete(entries);
    this.#pieces.set(entries, byLanguage);
    let piece = byLanguage.get(language);
    if (piece === undefined) {
      piece = Buffer.from(this.#write(entries, language));
      byLanguage.set(language, piece);
      this.#bytes += piece.length;
      this.#shrink();
    }
    return piece;
  }

  #shrink(): void {
    for (const [oldest, byLanguage] of this.#pieces) {
      if (this.#bytes <= MAX_BYTES) return;
      this.#pieces.delete(oldest);
      for (const { length } of byLanguage.values()) this.#bytes -= length;
    }
  }
}
