// Which test files are unit tests: those that start nothing, neither themselves nor through a helper that they import. Their
// imports say so, and nobody keeps a list. unit-guard.ts fails a test that starts something nevertheless.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** Functions and classes that open a server or a socket, or start a process: ours, and those of Node. */
const STARTERS =
  /\b(start[A-Z]\w*|spawn|spawnOwned|fork|exec|execFile|create(?:Server|Socket)|Server|connect|Socket|drive)\b/;

/** Import statements at the start of a line, except `import type`. Tests import dynamically only what they have compiled. */
const VALUE_IMPORTS = /^(?:import|export)\s+(?!type\b)(?<names>[^'";]*?)(?:\bfrom\s*)?'(?<from>[^']+)'/gm;

/** @returns the test files below `root`/test that start nothing, relative to `root` and sorted */
export function unitTestFiles(root: string): string[] {
  const known = new Map<string, boolean>();
  return readdirSync(path.join(root, 'test'), { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join('test', file))
    .filter((file) => file.endsWith('.test.ts') && !startsSomething(root, file, known))
    .sort();
}

/** Follows imports within test/ only: to import a module of src/, scripts/ or bench/ starts nothing. */
function startsSomething(root: string, file: string, known: Map<string, boolean>): boolean {
  const before = known.get(file);
  if (before !== undefined) return before;
  // Until it is decided, so that a circle of imports ends.
  known.set(file, false);
  const imports = [...readFileSync(path.join(root, file), 'utf8').matchAll(VALUE_IMPORTS)];
  const found = imports.some(({ groups: { names = '', from = '' } = {} }) => {
    if (STARTERS.test(names.replace(/\btype\s+\w+/g, ''))) return true;
    const target = path.posix.join(path.posix.dirname(file), from);
    const isHelper = from.startsWith('.') && target.startsWith('test/') && existsSync(path.join(root, target));
    return isHelper && startsSomething(root, target, known);
  });
  known.set(file, found);
  return found;
}
