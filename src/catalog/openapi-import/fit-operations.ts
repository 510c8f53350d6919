import { type HttpOperation, MAX_OPERATIONS_LENGTH } from '../operations/operation.ts';
import type { Made, MakePart, PartName } from './parts.ts';

/** An operation whose parts have not been fitted yet. */
export type Draft = {
  readonly operation: HttpOperation;
  readonly parts: Readonly<Record<PartName, MakePart>>;
};

/** The operation as it is stored, and what its author should know about its parts. */
type Fitted = { readonly operation: HttpOperation; readonly notes: readonly string[] };

/**
 * How many references within references a part shows: first as many as are useful to a reader, then fewer. After the last step, the
 * part is left out. Ten also bounds a chain of references to references.
 */
const LEVELS = [10, 3, 1, 0];

type Part = {
  readonly draft: number;
  readonly name: PartName;
  readonly make: MakePart;
  level: number;
  made: Made | null;
  isLeftOut: boolean;
  length: number;
};

/** Fits the parts of all operations into what may be stored together: the largest become smaller, or are left out. */
export function fitOperations(drafts: readonly Draft[]): Fitted[] {
  const parts = drafts.flatMap(({ parts }, draft) =>
    (['input', 'output', 'example'] as const).map((name) => newPart(draft, name, parts[name])),
  );
  const ownParts = (draft: number): Part[] => parts.slice(draft * 3, draft * 3 + 3);
  const assembled = (draft: number): HttpOperation => assemble((drafts[draft] as Draft).operation, ownParts(draft));
  const lengths = drafts.map((_, draft) => JSON.stringify(assembled(draft)).length + 1);
  let total = lengths.reduce((a, b) => a + b, 2);
  while (total > MAX_OPERATIONS_LENGTH) {
    const largest = parts.reduce((a, b) => (weightOf(b) > weightOf(a) ? b : a));
    // Without parts, the maximum number of operations always fits.
    if (largest.length === 0) break;
    shrink(largest);
    const length = JSON.stringify(assembled(largest.draft)).length + 1;
    total += length - (lengths[largest.draft] as number);
    lengths[largest.draft] = length;
  }
  return drafts.map((_, draft) => ({ operation: assembled(draft), notes: ownParts(draft).flatMap(notesOf) }));
}

/** A caller needs to know what to send before it cares what comes back, so outputs and examples give way before inputs. */
const weightOf = ({ name, length }: Part): number => (name === 'input' ? length / 2 : length);

function newPart(draft: number, name: PartName, make: MakePart): Part {
  const part: Part = { draft, name, make, level: -1, made: null, isLeftOut: false, length: 0 };
  shrink(part);
  return part;
}

/** Makes the part at the next level at which it fits. */
function shrink(part: Part): void {
  while (++part.level < LEVELS.length) {
    const made = part.make(LEVELS[part.level] as number);
    if (made === 'too_large') continue;
    part.made = made;
    part.length = made === null ? 0 : JSON.stringify(made.value).length;
    return;
  }
  part.made = null;
  part.isLeftOut = true;
  part.length = 0;
}

function assemble(operation: HttpOperation, parts: readonly Part[]): HttpOperation {
  const told = parts.flatMap(({ name, made }) => (made === null ? [] : [[name, made.value]]));
  return { ...operation, ...Object.fromEntries(told) };
}

function notesOf({ name, made, isLeftOut }: Part): string[] {
  if (isLeftOut) return [`${name}: is left out, because there is no room for it`];
  return (made?.notes ?? []).map((note) => `${name}: ${note}`);
}
