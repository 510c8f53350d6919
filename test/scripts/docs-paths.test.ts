import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve('.');
/** Made by tools: packages, builds, data, results of the benchmark (which name files as they were then). */
const skippedFolders = ['node_modules', '.git', 'dist', '.data', 'bench/results'];
/** It describes earlier versions, with the names of their files. */
const skippedPages = ['CHANGELOG.md'];

/** @returns paths relative to the project */
function pagesIn(folder: string): string[] {
  return readdirSync(path.join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory())
      return skippedFolders.includes(entry.name) || skippedFolders.includes(name) ? [] : pagesIn(name);
    return name.endsWith('.md') && !skippedPages.includes(name) ? [name] : [];
  });
}

const withoutCodeBlocks = (text: string): string => text.replaceAll(/^```[\s\S]*?^```/gm, '');

/** GitHub's name for the anchor of a heading. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
    .trim()
    .replaceAll(' ', '-');

const anchorsOf = (text: string): string[] =>
  Array.from(withoutCodeBlocks(text).matchAll(/^#+ (.+)$/gm), ([, heading = '']) => anchorOf(heading));

function linkFaults(page: string, text: string): string[] {
  return Array.from(text.matchAll(/\]\(([^)\s]+)\)/g), ([, link = '']) => link)
    .filter((link) => !/^[a-z]+:/.test(link))
    .flatMap((link) => {
      const [file = '', anchor] = link.split('#');
      const target = path.join(root, path.dirname(page), file);
      if (!existsSync(target)) return [`${page}: the link ${link} leads nowhere`];
      if (anchor === undefined) return [];
      const headings = anchorsOf(file === '' ? text : readFileSync(target, 'utf8'));
      return headings.includes(anchor) ? [] : [`${page}: the link ${link} names no heading of that page`];
    });
}

/** A word of inline code that names a file or folder of the project. Words that contain `<`, `*` or `…` are patterns. */
const isPath = (word: string): boolean =>
  /^(src|test|scripts|bench|docs|migrations)\/[\w./-]*$/.test(word) ||
  /^[\w.-]+\/[\w./-]+\.(ts|mjs|lua|md|sql)$/.test(word);

/** Paths count from the project, from the page's own folder, or from src/, as ARCHITECTURE.md writes them. */
const exists = (page: string, word: string): boolean =>
  ['.', path.dirname(page), 'src'].some((folder) => existsSync(path.join(root, folder, word)));

function pathFaults(page: string, text: string): string[] {
  const words = Array.from(text.matchAll(/`([^`\n]+)`/g), ([, code = '']) => code.split(/\s+/)).flat();
  const missing = words.filter((word) => isPath(word) && !exists(page, word));
  // Without its folder nobody would notice that a test has moved.
  const bare = words.filter((word) => /^[\w.-]+\.test\.ts$/.test(word));
  return [
    ...missing.map((word) => `${page}: \`${word}\` does not exist`),
    ...bare.map((word) => `${page}: \`${word}\` needs its folder`),
  ];
}

function faultsOf(page: string, text = readFileSync(path.join(root, page), 'utf8')): string[] {
  const prose = withoutCodeBlocks(text);
  return [...linkFaults(page, prose), ...pathFaults(page, prose)];
}

describe('the pages of the project', () => {
  it('name only files, folders and headings that exist', () => {
    const pages = pagesIn('.');
    expect(pages).toEqual(expect.arrayContaining(['README.md', 'docs/guarantees.md', 'bench/README.md']));
    expect(pages.flatMap((page) => faultsOf(page))).toEqual([]);
  });

  it.each([
    ['a link to a page that is not there', '[gone](gone.md)', 'docs/x.md: the link gone.md leads nowhere'],
    [
      'a link to a heading that is not there',
      '[gone](api.md#gone)',
      'docs/x.md: the link api.md#gone names no heading of that page',
    ],
    ['a source that is not there', 'see `src/http/gone.ts`', 'docs/x.md: `src/http/gone.ts` does not exist'],
    ['a source below src/ that is not there', 'see `http/gone.ts`', 'docs/x.md: `http/gone.ts` does not exist'],
    ['a folder that is not there', 'see `test/gone`', 'docs/x.md: `test/gone` does not exist'],
    ['a test in a command', '`npx vitest run test/gone.test.ts`', 'docs/x.md: `test/gone.test.ts` does not exist'],
    ['a test without its folder', '`errors.test.ts`', 'docs/x.md: `errors.test.ts` needs its folder'],
  ])('are at fault with %s', (_, text, fault) => {
    expect(faultsOf('docs/x.md', text)).toEqual([fault]);
  });

  it.each([
    ['a link to a heading', '[errors](api.md#errors) and [below](#here-it-is)\n\n## Here it is\n'],
    ['a link to another site', '[RFC](https://www.rfc-editor.org/rfc/rfc9110)'],
    ['files and folders', '`src/http`, `http/router.ts`, `glossary.md`, `npx vitest run test/errors.test.ts`'],
    ['a name that stands for many', '`bench/results/<date>`, `src/**/*.lua`, `src/…`'],
    ['a block of code', '```sh\ncat `src/gone.ts`\n```\n'],
  ])('are in order with %s', (_, text) => {
    expect(faultsOf('docs/x.md', text)).toEqual([]);
  });
});
