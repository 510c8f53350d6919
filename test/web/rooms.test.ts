// Rules of web/src that no compiler knows: who may import what, and who may touch what keeps secrets or runs text as code.

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';

const ROOT = path.resolve('web/src');
const files = readdirSync(ROOT, { recursive: true, encoding: 'utf8' })
  .filter((file) => /\.tsx?$/.test(file) && !file.endsWith('.d.ts'))
  .map((file) => ({ file, code: readFileSync(path.join(ROOT, file), 'utf8') }));

/** The files whose code has the pattern, except those that may have it. */
const others = (pattern: RegExp, ...mayHave: string[]): string[] =>
  files
    .filter(({ code }) => pattern.test(code.replace(/\/\*[\s\S]*?\*\/|(?<!:)\/\/.*/g, '')))
    .map(({ file }) => file)
    .filter((file) => !mayHave.some((allowed) => file === allowed || file.startsWith(`${allowed}/`)));

/** Folder → the folders that it must not import. */
const MUST_NOT: Readonly<Record<string, readonly string[]>> = {
  api: ['design', 'i18n', 'site', 'console'],
  design: ['site', 'console'],
  i18n: ['api', 'design', 'site', 'console'],
  calls: ['api', 'design', 'i18n', 'site', 'console'],
  site: ['console'],
  console: ['site'],
  'console/buyer': ['console/provider', 'console/admin'],
  'console/provider': ['console/buyer', 'console/admin'],
  'console/shared': ['console/buyer', 'console/provider', 'console/admin'],
};

describe('the rooms of the pages', () => {
  it('import only from rooms below or beside them', () => {
    const faults = files.flatMap(({ file, code }) =>
      [...code.matchAll(/(?:from|import\()\s*'(\.[^']+)'/g)].flatMap(([, specifier = '']) => {
        const target = path.posix.join(path.posix.dirname(file), specifier);
        return Object.entries(MUST_NOT)
          .filter(([room]) => file.startsWith(`${room}/`))
          .flatMap(([, forbidden]) => forbidden.filter((other) => target.startsWith(`${other}/`)))
          .map((other) => `${file} imports ${target} of ${other}`);
      }),
    );
    expect(faults).toEqual([]);
  });

  it('leave each foreign library to one owner', () => {
    expect(others(/from 'openapi-fetch'/, 'api')).toEqual([]);
    expect(others(/from 'preact-render-to-string'/, 'render.tsx')).toEqual([]);
  });

  it('leave key storage to the session, and store beyond a tab only colours, half a browser secret and the unsaved keys', () => {
    expect(others(/sessionStorage/, 'session.ts')).toEqual([]);
    expect(others(/localStorage/, 'theme.ts', 'shell.tsx', 'session/browser.ts', 'session/unkept.ts')).toEqual([]);
    expect(others(/document\.cookie|indexedDB/)).toEqual([]);
  });

  it('do not style classes of other rooms: style sheets stay when a tab goes from one room to the next', () => {
    const sheets = readdirSync(ROOT, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.css'));
    const owners = new Map<string, Set<string>>();
    for (const sheet of sheets) {
      for (const [, name = ''] of readFileSync(path.join(ROOT, sheet), 'utf8').matchAll(/^\s*\.([\w-]+)\s*[,{]/gm)) {
        owners.set(name, (owners.get(name) ?? new Set()).add(sheet));
      }
    }
    expect(owners.size).toBeGreaterThan(200);
    expect([...owners].filter(([, its]) => its.size > 1).map(([name, its]) => [name, ...its])).toEqual([]);
  });

  it('never run text as code, and never insert text as HTML', () => {
    expect(
      others(/dangerouslySetInnerHTML|innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function/),
    ).toEqual([]);
  });
});
