import { loadScript } from '../platform/script.js';
/** scripts/batch.lua, read once at start. The header of that file documents KEYS, ARGV and reply. */
export const batchScript = loadScript(import.meta.url, 'batch');
//# sourceMappingURL=scripts.js.map