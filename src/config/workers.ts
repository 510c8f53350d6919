import { availableParallelism } from 'node:os';

/** Maximum workers: a larger number is refused, and `auto` stops here. */
export const MAX_WORKERS = 64;

/** How many gateway processes WORKERS asks for: `auto` is one per CPU. Null when the text is neither `auto` nor a valid number. */
export function parseWorkers(text: string): number | null {
  if (text === 'auto') return Math.min(availableParallelism(), MAX_WORKERS);
  const workers = Number(text);
  return /^\d+$/.test(text) && workers >= 1 && workers <= MAX_WORKERS ? workers : null;
}
