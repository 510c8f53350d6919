import { loadScript } from '../platform/script.ts';

/** Read once at start. Each file's header documents its KEYS, ARGV and reply. */
export const keepAnswerScript = loadScript(import.meta.url, 'keep-answer');
export const readAnswerScript = loadScript(import.meta.url, 'read-answer');
