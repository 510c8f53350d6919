import { readFileSync } from 'node:fs';
import { defineScript, type Script } from './redis.ts';

/**
 * Reads `scripts/<name>.lua` beside the module at `moduleUrl`. The file's header documents its KEYS, ARGV and reply.
 *
 * @param moduleUrl `import.meta.url` of the caller
 */
export function loadScript(moduleUrl: string, name: string): Script {
  return defineScript(name, readFileSync(new URL(`./scripts/${name}.lua`, moduleUrl), 'utf8'));
}
