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
  return defineScript(name, withIncludes(new URL(`./scripts/${name}.lua`, moduleUrl), new Set()));
}

/** `--- @include "<path>"`, the path relative to the file that has the line. */
const INCLUDE = /^ *--- @include "(.+)"$/gm;

/**
 * The text of a Lua file, with each include line replaced by the text of the included file. Declarations of an included file are
 * local to the function that includes it. So a script includes a file once: including it again in another function would duplicate
 * it, and a circle would never end.
 *
 * @param above the files that include this one, and those that were included before it
 */
function withIncludes(file: URL, above: Set<string>): string {
  if (above.has(file.href)) throw new Error(`${file.pathname} is included twice`);
  above.add(file.href);
  return readFileSync(file, 'utf8').replace(INCLUDE, (_, path: string) =>
    withIncludes(new URL(path, file), above).trimEnd(),
  );
}
