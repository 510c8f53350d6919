import { loadScript } from '../platform/script.ts';

/** Read once at start, from the file whose header documents KEYS, ARGV and reply. */
export const batchScript = loadScript(import.meta.url, 'batch');
