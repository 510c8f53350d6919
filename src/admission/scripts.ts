import { loadScript } from '../platform/script.ts';

/** The scripts, read once at start from the files that document their KEYS, ARGV and replies. */
export const batchScript = loadScript(import.meta.url, 'batch');
