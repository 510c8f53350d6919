import { MAX_OPERATIONS_LENGTH } from '../operations/operation.js';
/**
 * How many references within references a part shows: as many as are of use to a reader, then fewer. After the last, the part is
 * left out. Ten also bounds a chain of references to references.
 */
const LEVELS = [10, 3, 1, 0];
/** Makes the parts of all operations so large that together they may be stored: the largest become smaller, or are left out. */
export function fitOperations(drafts) {
    const parts = drafts.flatMap(({ parts }, draft) => ['input', 'output', 'example'].map((name) => newPart(draft, name, parts[name])));
    const ownParts = (draft) => parts.slice(draft * 3, draft * 3 + 3);
    const assembled = (draft) => assemble(drafts[draft].operation, ownParts(draft));
    const lengths = drafts.map((_, draft) => JSON.stringify(assembled(draft)).length + 1);
    let total = lengths.reduce((a, b) => a + b, 2);
    while (total > MAX_OPERATIONS_LENGTH) {
        const largest = parts.reduce((a, b) => (weightOf(b) > weightOf(a) ? b : a));
        // Without parts, the most operations that there may be always have room.
        if (largest.length === 0)
            break;
        shrink(largest);
        const length = JSON.stringify(assembled(largest.draft)).length + 1;
        total += length - lengths[largest.draft];
        lengths[largest.draft] = length;
    }
    return drafts.map((_, draft) => ({ operation: assembled(draft), notes: ownParts(draft).flatMap(notesOf) }));
}
/** A caller needs to know what to send before it cares what comes back, so outputs and examples give way before inputs. */
const weightOf = ({ name, length }) => (name === 'input' ? length / 2 : length);
function newPart(draft, name, make) {
    const part = { draft, name, make, level: -1, made: null, isLeftOut: false, length: 0 };
    shrink(part);
    return part;
}
/** Makes the part at the next level at which it is not too large. */
function shrink(part) {
    while (++part.level < LEVELS.length) {
        const made = part.make(LEVELS[part.level]);
        if (made === 'too_large')
            continue;
        part.made = made;
        part.length = made === null ? 0 : JSON.stringify(made.value).length;
        return;
    }
    part.made = null;
    part.isLeftOut = true;
    part.length = 0;
}
function assemble(operation, parts) {
    const told = parts.flatMap(({ name, made }) => (made === null ? [] : [[name, made.value]]));
    return { ...operation, ...Object.fromEntries(told) };
}
function notesOf({ name, made, isLeftOut }) {
    if (isLeftOut)
        return [`${name}: is left out, because there is no room for it`];
    return (made?.notes ?? []).map((note) => `${name}: ${note}`);
}
//# sourceMappingURL=fit-operations.js.map