/**
 * Which *grams* may occur in each listing's text: three characters in a row, or two if one of them is of a script that is commonly
 * written without spaces between short words (Chinese, Japanese, Korean and what lies near them in Unicode). A listing has a bit
 * set for each gram, so it takes a quarter to half a byte per character, and a word that occurs has all of its bits set. The
 * converse need not hold: code that finds a listing here must check its text.
 *
 * Signatures of equal size are stored in blocks, because 100 000 separate arrays would take 20 MB more.
 */
export type Signature = { readonly size: number; readonly position: number };

/** Words of 32 bits. A text of up to 128 characters has the smallest signature, one of more than 1 024 the largest. */
const MIN_SIZE = 8;
const MAX_SIZE = 128;
/** Signatures per block. The largest block has 128 KiB. */
const BLOCK = 256;
/** From this character (CJK radicals), two characters are a gram. */
const DENSE_SCRIPTS = 0x2e80;
/** Maximum number of grams compared per query. More would hardly exclude more listings. */
const MAX_QUERY_GRAMS = 24;

export class Signatures {
  readonly #tables = new Map<number, Table>();

  add(text: string): Signature {
    let size = MIN_SIZE;
    while (size < MAX_SIZE && size * 16 < text.length) size *= 2;
    let table = this.#tables.get(size);
    if (table === undefined) {
      table = new Table(size);
      this.#tables.set(size, table);
    }
    return { size, position: table.add(text) };
  }

  remove({ size, position }: Signature): void {
    this.#tables.get(size)?.remove(position);
  }

  /** Whether all of these grams may occur. */
  mayContain({ size, position }: Signature, grams: readonly number[]): boolean {
    return (this.#tables.get(size) as Table).hasAll(position, grams);
  }
}

/** The grams of words, by hash. Empty if all words are too short to have any. */
export function gramsOf(words: readonly string[]): number[] {
  const grams = new Set<number>();
  for (const word of words) {
    forEachGram(word, (gram) => {
      if (grams.size < MAX_QUERY_GRAMS) grams.add(gram);
    });
  }
  return [...grams];
}

class Table {
  readonly #size: number;
  readonly #mask: number;
  readonly #blocks: Uint32Array[] = [];
  readonly #free: number[] = [];
  #next = 0;

  constructor(size: number) {
    this.#size = size;
    this.#mask = size * 32 - 1;
  }

  add(text: string): number {
    const position = this.#free.pop() ?? this.#next++;
    const index = Math.floor(position / BLOCK);
    if (index === this.#blocks.length) this.#blocks.push(new Uint32Array(BLOCK * this.#size));
    const block = this.#blocks[index] as Uint32Array;
    const begin = (position % BLOCK) * this.#size;
    block.fill(0, begin, begin + this.#size);
    forEachGram(text, (gram) => {
      const bit = gram & this.#mask;
      const at = begin + (bit >>> 5);
      block[at] = (block[at] as number) | (1 << (bit & 31));
    });
    return position;
  }

  remove(position: number): void {
    this.#free.push(position);
  }

  hasAll(position: number, grams: readonly number[]): boolean {
    const block = this.#blocks[Math.floor(position / BLOCK)] as Uint32Array;
    const begin = (position % BLOCK) * this.#size;
    for (let i = 0; i < grams.length; i++) {
      const bit = (grams[i] as number) & this.#mask;
      if (((block[begin + (bit >>> 5)] as number) & (1 << (bit & 31))) === 0) return false;
    }
    return true;
  }
}

/** A gram depends on its own characters only, so the grams of a word are grams of every text in which the word occurs. */
function forEachGram(text: string, visit: (gram: number) => void): void {
  for (let i = 0; i + 1 < text.length; i++) {
    const [a, b] = [text.charCodeAt(i), text.charCodeAt(i + 1)];
    // No word contains a space.
    if (a <= 0x20 || b <= 0x20) continue;
    if (a >= DENSE_SCRIPTS || b >= DENSE_SCRIPTS) {
      visit(hash(a, b, 0));
    } else if (i + 2 < text.length) {
      const c = text.charCodeAt(i + 2);
      if (c > 0x20 && c < DENSE_SCRIPTS) visit(hash(a, b, c));
    }
  }
}

function hash(a: number, b: number, c: number): number {
  let h = Math.imul(a, 0x9e3779b1) ^ Math.imul(b, 0x85ebca6b) ^ Math.imul(c, 0xc2b2ae35);
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d);
  return (h ^ (h >>> 13)) >>> 0;
}
