import type { Browser } from './browser.ts';

/** How long an answer of Postgres is reused. */
const FRESH_MS = 1_000;
/** Maximum number of answers kept, each of some 200 bytes. Beyond it the oldest is dropped. */
const MAX_KEPT = 1_000;

type Kept = { readonly keyId: Promise<string | null>; readonly readAtMs: number };

/**
 * Tells whose bucket the requests of a browser draw on. Postgres is asked at most once a second for each browser, because it is
 * asked before a token is taken: a refused request must not cost a query. The rights of a request are always read anew.
 *
 * Tested by test/sessions/holders.test.ts.
 */
export class Holders {
  readonly #read: (shown: readonly Browser[]) => Promise<string | null>;
  readonly #kept = new Map<string, Kept>();

  /** @param read  the id of the key of these browsers; null: none has a session */
  constructor(read: (shown: readonly Browser[]) => Promise<string | null>) {
    this.#read = read;
  }

  /** @param mayLoad called before Postgres is asked; if it returns false, no key is found */
  async of(shown: readonly Browser[], mayLoad: () => boolean): Promise<string | null> {
    const name = shown.map(({ hash }) => hash).join();
    const kept = this.#kept.get(name);
    if (kept !== undefined && performance.now() - kept.readAtMs < FRESH_MS) return kept.keyId;
    if (shown.length === 0 || !mayLoad()) return null;
    const read = { keyId: this.#read(shown), readAtMs: performance.now() };
    this.#kept.delete(name);
    this.#kept.set(name, read);
    for (const oldest of this.#kept.keys()) {
      if (this.#kept.size <= MAX_KEPT) break;
      this.#kept.delete(oldest);
    }
    // Failures are not kept.
    read.keyId.catch(() => {
      if (this.#kept.get(name) === read) this.#kept.delete(name);
    });
    return read.keyId;
  }
}
