// What the callers of one buyer have asked with idempotency keys, so that they repeat their own calls and those of each other.

import type { Key } from '../integration/market-client.ts';
import type { Random } from './random.ts';
import type { Wish } from './wishes.ts';

/** A call, and the API key that it is made with. */
export type Asked = { readonly key: Key; readonly wish: Wish };

export class Notebook {
  /** By the id of the API key. */
  readonly #asked = new Map<string, Asked[]>();

  #of({ key_id: keyId }: Key): Asked[] {
    const asked = this.#asked.get(keyId) ?? [];
    this.#asked.set(keyId, asked);
    return asked;
  }

  /** An idempotency key that no call of this API key has yet. Calls of other keys have it, too. */
  nextKey(key: Key): string {
    return String(this.#of(key).length);
  }

  add(asked: Asked): void {
    this.#of(asked.key).push(asked);
  }

  /** A call that was made, the newest ones more often. */
  draw(key: Key, random: Random): Asked | null {
    const asked = this.#of(key);
    return asked[asked.length - 1 - Math.floor(random.next() ** 2 * asked.length)] ?? null;
  }
}
