import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
export function defineScript(name, source) {
    return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}
/**
 * Reads `scripts/<name>.lua` beside the module at `moduleUrl`. The file's header documents its KEYS, ARGV and reply.
 *
 * @param moduleUrl `import.meta.url` of the caller
 */
export function loadScript(moduleUrl, name) {
    return defineScript(name, withIncludes(new URL(`./scripts/${name}.lua`, moduleUrl), new Set()));
}
/** `--- @include "<path>"`, the path relative to the file that has the line. */
const INCLUDE = /^ *--- @include "(.+)"$/gm;
/**
 * The text of a Lua file, with the text of another file in place of each line that includes it. What an included file declares is
 * local to the function that includes it. So a script includes a file once: a second time in another function would make a second
 * one of it, and in a circle it would never end.
 *
 * @param above the files that include this one, and those that were included before it
 */
function withIncludes(file, above) {
    if (above.has(file.href))
        throw new Error(`${file.pathname} is included twice`);
    above.add(file.href);
    return readFileSync(file, 'utf8').replace(INCLUDE, (_, path) => withIncludes(new URL(path, file), above).trimEnd());
}
//# sourceMappingURL=script.js.map