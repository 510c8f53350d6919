// The vocabulary: docs/glossary.md has one meaning a word, each word is used, and words that were given up stay away.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

/** Given up: each stood for many things, or for one that has a better word. As a regular expression, and what to write instead. */
const RETIRED: readonly (readonly [word: RegExp, instead: string])[] = [
  [/\bwhoever\b/i, 'anyone who'],
  [/\bheeds?\b/i, 'obey'],
  [/\bdear(er|est)?\b/i, 'expensive, more expensive'],
  [/\bbecomes of\b/i, 'happens to'],
  [/\bRefillPlace|\bPagePlace|\bplacesOf/, 'refill, permit'],
];

const MADE = ['web/src/api/schema.d.ts', 'bench/results'];

function filesBelow(folder: string, pattern: RegExp): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => path.posix.join(folder, file))
    .filter((file) => pattern.test(file) && !MADE.some((made) => file.startsWith(made)));
}

const CODE = /\.(tsx?|mjs|lua|sql|css|txt)$/;
const code = ['src', 'web/src', 'migrations'].flatMap((folder) => filesBelow(folder, CODE));
const pages = [...filesBelow('docs', /\.md$/), 'README.md', 'ARCHITECTURE.md'];
/** Decisions tell how something came about, in the words of their time. */
const HISTORY = /^docs\/decisions\//;
const textOf = new Map([...code, ...pages].map((file) => [file, readFileSync(file, 'utf8')]));

const glossary = textOf.get('docs/glossary.md') as string;
/** The bold words in the first column of its tables. */
const words = Array.from(glossary.matchAll(/^\| (\*\*[^|]*)\|/gm), ([, cell = '']) =>
  Array.from(cell.matchAll(/\*\*([^*]+)\*\*/g), ([, word = '']) => word),
).flat();

/** A word as text, names and columns have it: `usage event` is also UsageEvent, usageEvent, usage_event, `usage events`. */
function patternOf(word: string): RegExp {
  const stem = word.replace(/e$|y$/, '');
  return new RegExp(stem.split(/[ -]/).join('[ _\\n*-]*'), 'i');
}

describe('the glossary', () => {
  it('defines each word once', () => {
    expect(words.length).toBeGreaterThan(80);
    expect(words.filter((word, index) => words.indexOf(word) !== index)).toEqual([]);
  });

  it('contains only words that code or other pages use', () => {
    const all = [...textOf].filter(([file]) => file !== 'docs/glossary.md').map(([, text]) => text);
    const used = all.join('\n');
    expect(words.filter((word) => !patternOf(word).test(used))).toEqual([]);
  });
});

describe('abandoned words', () => {
  it.each(RETIRED)('%s is no longer used', (pattern) => {
    const present = [...textOf].filter(([file]) => !HISTORY.test(file));
    const found = present.flatMap(([file, text]) =>
      text.split('\n').flatMap((line, index) => (pattern.test(line) ? [`${file}:${index + 1} ${line.trim()}`] : [])),
    );
    expect(found).toEqual([]);
  });
});
