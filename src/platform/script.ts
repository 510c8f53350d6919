import { createHash } from 'node:crypto';

/** A Lua script with its digest, loaded from a file beside the code. */
export type Script = { readonly name: string; readonly source: string; readonly sha: string };

export function defineScript(name: string, source: string): Script {
  return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}
