import { availableParallelism } from 'node:os';

export const MAX_WORKERS = 64;

/** `auto` or a number → how many gateway processes; null when it is neither. */
export function parseWorkers(text: string): number | null {
  if (text === 'auto') return Math.min(availableParallelism(), MAX_WORKERS);
  const workers = Number(text);
  return /^\d+$/.test(text) && workers >= 1 && workers <= MAX_WORKERS ? workers : null;
}
