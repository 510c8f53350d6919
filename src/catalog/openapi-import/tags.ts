import { DocumentFault } from './document-fault.ts';
import { type JsonObject, listOf, quoted } from './json.ts';

export type Tag = { readonly tag: string; readonly operations: number };

/** Maximum tags that a refusal names. */
const MAX_NAMED = 30;

/** Chooses operations of a document by their tags, and counts these. */
export class Tags {
  readonly #wanted: string | null;
  readonly #counts = new Map<string, number>();

  /** @param wanted  a tag, or several that are joined by commas; null: every operation */
  constructor(wanted: string | null) {
    this.#wanted = wanted;
  }

  /** Call this once for each operation. */
  isWanted({ tags }: JsonObject): boolean {
    const own = listOf(tags).filter((tag) => typeof tag === 'string');
    for (const tag of new Set(own)) this.#counts.set(tag, (this.#counts.get(tag) ?? 0) + 1);
    const wanted = this.#wanted;
    return wanted === null || own.includes(wanted) || own.some((tag) => namesIn(wanted).includes(tag));
  }

  /** A tag that no operation has is a mistake, and must not replace the operations of a listing. @throws DocumentFault */
  refuseUnknown(): void {
    if (this.#wanted === null || this.#counts.has(this.#wanted)) return;
    const unknown = namesIn(this.#wanted).find((tag) => !this.#counts.has(tag));
    if (unknown === undefined) return;
    const known = this.counted()
      .slice(0, MAX_NAMED)
      .map(({ tag, operations }) => `${quoted(tag)} (${operations})`);
    const more = this.#counts.size > MAX_NAMED ? ` and ${this.#counts.size - MAX_NAMED} more` : '';
    const has = known.length === 0 ? 'They have none' : `They have ${known.join(', ')}${more}`;
    throw new DocumentFault(`tag: no operation of the document has the tag ${quoted(unknown)}. ${has}.`);
  }

  /** In descending order of their number of operations. */
  counted(): Tag[] {
    return [...this.#counts]
      .map(([tag, operations]) => ({ tag: quoted(tag), operations }))
      .sort((a, b) => b.operations - a.operations);
  }
}

const namesIn = (wanted: string): string[] => wanted.split(',').map((tag) => tag.trim());
