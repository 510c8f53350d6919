import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** A Lua script with its SHA-1 digest: EVALSHA names the script by the digest. */
export type Script = { readonly name: string; readonly source: string; readonly sha: string };

export function defineScript(name: string, source: string): Script {
  return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}

/**
 * Reads `scripts/<name>.lua` beside the module at `moduleUrl`. The file's header documents its KEYS, ARGV and reply.
 *
 * @param moduleUrl `import.meta.url` of the caller
 */
export function loadScript(moduleUrl: string, name: string): Script {
  return defineScript(name, readFileSync(new URL(`./scripts/${name}.lua`, moduleUrl), 'utf8'));
}
