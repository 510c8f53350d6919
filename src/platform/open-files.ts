import { readFileSync } from 'node:fs';

const LINE = /^Max open files\s+(\d+|unlimited)/m;

/**
 * How many files and sockets this process may have open (`ulimit -n`). Node raises the soft limit to the hard one when it starts.
 * Infinity if there is no limit, and on systems other than Linux, which do not report it in this way.
 */
export function maxOpenFiles(limitsFile = '/proc/self/limits'): number {
  let text: string;
  try {
    text = readFileSync(limitsFile, 'utf8');
  } catch {
    return Number.POSITIVE_INFINITY;
  }
  const limit = Number(LINE.exec(text)?.[1]);
  return Number.isNaN(limit) ? Number.POSITIVE_INFINITY : limit;
}
