// @ts-check
// What files import and export, whatever the layout is: who imports whom in a circle, and what is exported for nobody. Used by
// check-imports.mjs, and tested with it.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/**
 * @typedef {object} Import
 * @property {string} specifier
 * @property {number} line
 * @property {boolean} typeOnly
 * @property {string} clause the text between `import` and `from`; '' for other forms
 */

/** @param {string} srcDir @param {string} [folder] in it @returns {string[]} paths relative to srcDir, with forward slashes */
export function sourceFiles(srcDir, folder = '') {
  return readdirSync(path.join(srcDir, folder), { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const file = path.posix.join(folder, entry.name);
      if (entry.isDirectory()) return entry.name === 'node_modules' ? [] : sourceFiles(srcDir, file);
      return /\.[cm]?[jt]sx?$/.test(entry.name) ? [file] : [];
    });
}

/** Replaces comments by blanks, so that every line keeps its number. @param {string} code */
export function withoutComments(code) {
  const blank = (/** @type {string} */ text) => text.replace(/[^\n]/g, ' ');
  // Strings are matched first, so that a '//' inside a string does not count as a comment.
  return code.replace(
    /('(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")|\/\*[\s\S]*?\*\/|(?<![\\/])\/\/[^\n]*/g,
    (text, string) => (string === undefined ? blank(text) : text),
  );
}

const importForms = [
  // import … from 'x' and export … from 'x'
  /^[ \t]*(?:import|export)\b(?<clause>[^'";]*?)\bfrom\s*['"](?<specifier>[^'"]+)['"]/gm,
  // import 'x'
  /^[ \t]*import\s*['"](?<specifier>[^'"]+)['"]/gm,
  // import('x'), also as a type; require('x')
  /\b(?:import|require|require\.resolve)\(\s*['"](?<specifier>[^'"]+)['"]/g,
];

/** @param {string} code @returns {Import[]} */
export function findImports(code) {
  return importForms.flatMap((form) =>
    [...code.matchAll(form)].map((match) => {
      const start = match.index + match[0].search(/\S/);
      const clause = match.groups?.clause ?? '';
      const typeOnly = /^\s*type\b/.test(clause);
      return { specifier: match.groups?.specifier ?? '', line: lineAt(code, start), typeOnly, clause };
    }),
  );
}

/** @param {string} code @param {number} offset */
export const lineAt = (code, offset) => code.slice(0, offset).split('\n').length;

/** @typedef {{ file: string, line: number, typeOnly: boolean }} LocalImport `file` is relative to the folder that is checked */

/**
 * Finds files that import each other in a circle. An `import type` counts too, because a reader of one of the files has to
 * read all of them. Two files may do so if one of them imports only types of the other.
 *
 * @param {string} srcDir
 * @returns {string[]} one line for each group of such files, with the shortest circle through the first of them
 */
export function circles(srcDir) {
  const graph = new Map(sourceFiles(srcDir).map((file) => [file, localImports(srcDir, file)]));
  const reached = new Map([...graph.keys()].map((file) => [file, waysFrom(graph, file)]));
  /** @type {Set<string>} */
  const grouped = new Set();
  return [...reached].flatMap(([file, ways]) => {
    const way = ways.get(file);
    if (way === undefined || grouped.has(file)) return [];
    const group = [...ways.keys()].filter((other) => reached.get(other)?.has(file));
    for (const other of group) grouped.add(other);
    const within = group.flatMap((from) => graph.get(from)?.filter((to) => group.includes(to.file)) ?? []);
    const isPair = group.length === 2 && group.some((other) => within.every((to) => to.file !== other || to.typeOnly));
    if (isPair) return [];
    const line = graph.get(file)?.find((to) => to.file === way[0])?.line;
    const of = way.length < group.length ? ` among ${group.length} files` : '';
    return [`${file}:${line} imports ${way[0]}: a circle${of} (${[file, ...way].join(' → ')})`];
  });
}

/** @param {string} srcDir @param {string} file @returns {LocalImport[]} */
function localImports(srcDir, file) {
  return findImports(withoutComments(readFileSync(path.join(srcDir, file), 'utf8')))
    .filter(({ specifier }) => specifier.startsWith('.'))
    .map(({ specifier, ...found }) => ({ ...found, file: path.posix.join(path.posix.dirname(file), specifier) }));
}

/**
 * @param {Map<string, LocalImport[]>} graph
 * @param {string} start
 * @returns {Map<string, string[]>} for each file that `start` reaches, the files on the shortest way to it, without `start`
 */
function waysFrom(graph, start) {
  /** @type {Map<string, string[]>} */
  const ways = new Map();
  // A Map's iterator also visits what is added while it runs, so this is a breadth-first search.
  const visit = (/** @type {string} */ file, /** @type {string[]} */ way) => {
    for (const to of graph.get(file) ?? []) if (!ways.has(to.file)) ways.set(to.file, [...way, to.file]);
  };
  visit(start, []);
  for (const [file, way] of ways) visit(file, way);
  return ways;
}

const exportForms = [
  /^export\s+(?:(?:declare|abstract|async)\s+)*(?:const|let|function\*?|class|type|interface|enum)\s+(?<names>[\w$]+)/gm,
  // export { a, type b, c as d }, also from another file
  /^export\s+(?:type\s+)?\{(?<names>[^}]*)\}/gm,
];

/**
 * @param {string} srcDir
 * @param {readonly string[]} otherDirs with files that may import those of srcDir
 * @returns {string[]} one line for each export of srcDir that no other file imports. `export *` is not followed
 */
export function unusedExports(srcDir, otherDirs) {
  /** @type {Map<string, Set<string>>} */
  const wanted = new Map();
  for (const dir of [srcDir, ...otherDirs]) {
    for (const file of sourceFiles(dir).map((name) => path.join(dir, name))) {
      // With its comments, because JSDoc imports types.
      const code = readFileSync(file, 'utf8');
      for (const { specifier, clause } of findImports(code)) {
        const target = path.resolve(path.dirname(file), specifier);
        const names = wanted.get(target) ?? new Set();
        // Where a whole module is imported, any word of the file may be one of its exports.
        for (const name of (clause.includes('{') ? clause : code).match(/[\w$]+/g) ?? []) names.add(name);
        wanted.set(target, names);
      }
    }
  }
  return sourceFiles(srcDir).flatMap((file) => {
    const code = withoutComments(readFileSync(path.join(srcDir, file), 'utf8'));
    const names = wanted.get(path.resolve(srcDir, file));
    return exportForms
      .flatMap((form) => [...code.matchAll(form)])
      .flatMap((match) =>
        (match.groups?.names ?? '')
          .split(',')
          .flatMap((name) => /[\w$]+\s*$/.exec(name)?.[0].trim() ?? [])
          .filter((name) => !names?.has(name))
          .map((name) => `src/${file}:${lineAt(code, match.index)} exports ${name}: no other file imports it`),
      );
  });
}
