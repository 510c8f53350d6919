import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const root = path.resolve('.');
/** Made by tools: packages, builds, data, results of the benchmark (which name files as they were then). */
const skippedFolders = ['node_modules', '.git', 'dist', '.data', 'bench/results'];
/** It describes earlier versions, with the names of their files. */
const skippedPages = ['CHANGELOG.md'];

/** Folders beside src/ that have a page as rooms have. */
const TOP_FOLDERS = ['bench', 'deploy', 'migrations', 'scripts', 'test', 'web'];

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
  /^(src|test|scripts|bench|docs|migrations|web|deploy|examples)\/[\w./-]*$/.test(word) ||
  /^(\.\.|[\w.-]+)\/[\w./-]+\.(tsx?|mjs|lua|md|sql)$/.test(word);

/** A file's name without its folder, on the page of a room. */
const isBareFile = (word: string): boolean => /^[\w-]+(\.[\w-]+)*\.(tsx?|mjs|lua|sql)$/.test(word);

/** The pages of rooms: the README.md of each folder that ARCHITECTURE.md lists. */
const roomPages = (): string[] =>
  Array.from(readFileSync('ARCHITECTURE.md', 'utf8').matchAll(/\]\(([\w/]+\/README\.md)[)#]/g), ([, page = '']) => page)
    .filter((page, index, all) => !page.startsWith('docs/') && all.indexOf(page) === index)
    .sort();

/** Names of all files below a folder. */
const filesBelow = (folder: string): string[] =>
  existsSync(path.join(root, folder))
    ? readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => path.basename(file))
    : [];

/**
 * A bare name belongs to the room of its page, or to a folder of which the same line names a file or all: 'its SQL in
 * `src/accounts/credits.ts` and `debits.ts` there'.
 */
function bareFileFaults(page: string, text: string): string[] {
  const own = filesBelow(path.dirname(page));
  return text.split('\n').flatMap((line) => {
    const words = wordsOf(line);
    const bare = words.filter((word) => isBareFile(word) && !own.includes(word) && !existsSync(path.join(root, word)));
    if (bare.length === 0) return [];
    const folders = words
      .filter((word) => word.includes('/') && isPath(word))
      .map((word) => (path.extname(word) === '' ? word : path.dirname(word)))
      .flatMap((folder) => [folder, path.join(path.dirname(page), folder)]);
    const near = folders.flatMap((folder) => filesBelow(folder));
    return bare
      .filter((word) => !near.includes(word))
      .map((word) => `${page}: \`${word}\` is in no room that its line names`);
  });
}

const wordsOf = (text: string): string[] =>
  Array.from(text.matchAll(/`([^`\n]+)`/g), ([, code = '']) => code.split(/\s+/)).flat();

/** Paths count from the project, from the page's own folder, or from src/, as comments write them. */
const exists = (page: string, word: string): boolean =>
  ['.', path.dirname(page), 'src'].some((folder) => existsSync(path.join(root, folder, word)));

function pathFaults(page: string, text: string): string[] {
  const words = wordsOf(text);
  const missing = words.filter((word) => isPath(word) && !exists(page, word));
  // Without its folder nobody would notice that a test has moved.
  const isRoom = path.basename(page) === 'README.md';
  const bare = isRoom ? [] : words.filter((word) => /^[\w.-]+\.test\.ts$/.test(word));
  return [
    ...missing.map((word) => `${page}: \`${word}\` does not exist`),
    ...bare.map((word) => `${page}: \`${word}\` needs its folder`),
  ];
}

function faultsOf(page: string, text = readFileSync(path.join(root, page), 'utf8')): string[] {
  const prose = withoutCodeBlocks(text);
  const bare = path.basename(page) === 'README.md' ? bareFileFaults(page, prose) : [];
  return [...linkFaults(page, prose), ...pathFaults(page, prose), ...bare];
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
    ['a page that is not there', 'see `web/src/gone.tsx`', 'docs/x.md: `web/src/gone.tsx` does not exist'],
    ['a folder of containers that is not there', 'see `deploy/gone`', 'docs/x.md: `deploy/gone` does not exist'],
    ['a test without its folder', '`errors.test.ts`', 'docs/x.md: `errors.test.ts` needs its folder'],
  ])('have a fault if they contain %s', (_, text, fault) => {
    expect(faultsOf('docs/x.md', text)).toEqual([fault]);
  });

  it("have a fault if a room's page names a file that neither the room nor a folder on that line has", () => {
    expect(
      faultsOf('src/keys/README.md', '`keys.ts`, `children/change.ts`, `src/proxy/offers.ts` with `target.ts`'),
    ).toEqual([]);
    expect(faultsOf('src/keys/README.md', '`src/proxy/offers.ts`\nand `target.ts`')).toEqual([
      'src/keys/README.md: `target.ts` is in no room that its line names',
    ]);
  });

  it('include one page for each room, of 40 lines at most', () => {
    const rooms = readdirSync('src', { withFileTypes: true }).filter((entry) => entry.isDirectory());
    const folders = [...rooms.map(({ name }) => `src/${name}`), ...TOP_FOLDERS];
    expect(roomPages()).toEqual(folders.map((folder) => `${folder}/README.md`).sort());
    // The benchmark's page is its manual, too.
    const pages = roomPages().filter((page) => page !== 'bench/README.md');
    const long = pages.filter((page) => readFileSync(page, 'utf8').trimEnd().split('\n').length > 40);
    expect(long).toEqual([]);
  });

  it.each([
    ['a link to a heading', '[errors](api.md#errors) and [below](#here-it-is)\n\n## Here it is\n'],
    ['a link to another site', '[RFC](https://www.rfc-editor.org/rfc/rfc9110)'],
    ['files and folders', '`src/http`, `http/router.ts`, `glossary.md`, `npx vitest run test/errors.test.ts`'],
    ['a name that stands for many', '`bench/results/<date>`, `src/**/*.lua`, `src/…`'],
    ['a block of code', '```sh\ncat `src/gone.ts`\n```\n'],
  ])('have no fault if they contain %s', (_, text) => {
    expect(faultsOf('docs/x.md', text)).toEqual([]);
  });
});
