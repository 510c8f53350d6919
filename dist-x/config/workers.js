import { availableParallelism } from 'node:os';
/** More workers than this are refused; `auto` stops at this number. */
export const MAX_WORKERS = 64;
/** How many gateway processes WORKERS asks for: `auto` is one per CPU. Null when the text is neither `auto` nor a valid number. */
export function parseWorkers(text) {
    if (text === 'auto')
        return Math.min(availableParallelism(), MAX_WORKERS);
    const workers = Number(text);
    return /^\d+$/.test(text) && workers >= 1 && workers <= MAX_WORKERS ? workers : null;
}
//# sourceMappingURL=workers.js.map