import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkImports, unusedAllowances } from '../../scripts/check-imports.mjs';
import { circles, unusedExports } from '../../scripts/import-graph.mjs';

let src: string;
beforeEach(() => {
  src = mkdtempSync(path.join(tmpdir(), 'tollgate-imports-'));
});
afterEach(() => rmSync(src, { recursive: true, force: true }));

function write(files: Record<string, string>): void {
  for (const [name, code] of Object.entries(files)) {
    const file = path.join(src, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, code);
  }
}

function faultsOf(files: Record<string, string>): string[] {
  write(files);
  return [...checkImports(src), ...circles(src)];
}

describe('import directions', () => {
  it('a tree whose imports all point downwards has no fault', () => {
    const faults = faultsOf({
      'main.ts': "import { env } from './config/env.ts';\nimport './roles/gateway.ts';\nprocess.env.PORT;",
      'roles/gateway.ts': "import { serve } from '../http/server.ts';\nimport type { Env } from '../config/env.ts';",
      'config/env.ts': 'export const env = process.env;',
      'http/server.ts':
        "import Ajv from 'ajv';\nimport { Gate } from '../gate/gate.ts';\nimport type { App } from 'uws-current';",
      'gate/gate.ts': "import { admit } from '../admission/admit.ts';",
      'proxy/exchange.ts':
        "import { admit } from '../admission/admit.ts';\nimport { send } from '../upstream/client.ts';",
      'admission/admit.ts': "import { wallet } from '../platform/redis.ts';\nimport { ApiError } from '../errors.ts';",
      'upstream/client.ts': "import net from 'node:net';\nimport type { Env } from '../config/env.ts';",
      'platform/redis.ts': "import { Redis } from 'ioredis';",
      'observability/log.ts': "import pino from 'pino';",
      'errors.ts': 'export class ApiError extends Error {}',
    });
    expect(faults).toEqual([]);
  });

  it.each([
    [
      'domain imports proxy',
      'ledger/writing/writer.ts',
      "import { x } from '../../proxy/exchange.ts';",
      /ledger may import platform/,
    ],
    ['upstream imports Redis', 'upstream/client.ts', "import { x } from '../platform/redis.ts';", /knows no money/],
    [
      'a type is imported from a folder above',
      'admission/admit.ts',
      "import type { X } from '../http/server.ts';",
      /admission knows no HTTP/,
    ],
    [
      'a re-export of a folder above',
      'platform/redis.ts',
      "export { x } from '../ledger/writer.ts';",
      /platform may import no other folder/,
    ],
    [
      'a dynamic import',
      'platform/redis.ts',
      "const x = await import('../ledger/w.ts');",
      /platform may import no other folder/,
    ],
    [
      'the configuration is read below the entries',
      'proxy/exchange.ts',
      "import { env } from '../config/env.ts';",
      /only an entry reads/,
    ],
    ['a role is imported', 'http/server.ts', "import '../roles/gateway.ts';", /http may import gate/],
    ['an entry is imported', 'proxy/exchange.ts', "import '../main.ts';", /no file may import an entry/],
    ['outside of src', 'proxy/exchange.ts', "import '../../scripts/x.mjs';", /no file from outside/],
    ['an unknown folder', 'helpers/x.ts', "import 'node:fs';", /helpers is not in the table/],
  ])('%s: is a fault', (_, file, code, rule) => {
    const faults = faultsOf({ [file]: `// first line\n${code}` });
    expect(faults).toEqual([expect.stringMatching(rule)]);
    expect(faults[0]).toMatch(`src/${file}:2 imports `);
  });

  it('an import cycle is a fault', () => {
    const faults = faultsOf({
      'keys/a.ts': "import './b.ts';",
      'keys/b.ts': "import './c.ts';",
      'keys/c.ts': "import { type A, a } from './a.ts';",
    });
    expect(faults).toEqual([expect.stringMatching(/a circle \(.*keys\/a\.ts.* → .*\)/)]);
  });

  it('a circle that exists only because of types is a fault, too', () => {
    const faults = faultsOf({
      'keys/a.ts': "import { b } from './b.ts';",
      'keys/b.ts': "import type { C } from './c.ts';",
      'keys/c.ts': "export type { A } from './a.ts';",
    });
    expect(faults).toEqual(['keys/a.ts:1 imports keys/b.ts: a circle (keys/a.ts → keys/b.ts → keys/c.ts → keys/a.ts)']);
  });

  it('two files may import types of each other', () => {
    expect(
      faultsOf({ 'keys/a.ts': "import { b } from './b.ts';", 'keys/b.ts': "import type { A } from './a.ts';" }),
    ).toEqual([]);
  });

  it('two files that import values of each other are a fault', () => {
    const faults = faultsOf({
      'keys/a.ts': "import { b } from './b.ts';",
      'keys/b.ts': "import { type A, a } from './a.ts';",
    });
    expect(faults).toEqual([expect.stringContaining('(keys/a.ts → keys/b.ts → keys/a.ts)')]);
  });

  it('circles that share files are one fault, even where each circle has only two files', () => {
    const faults = faultsOf({
      'keys/a.ts': "import type { B } from './b.ts';\nimport { c } from './c.ts';",
      'keys/b.ts': "import { a } from './a.ts';",
      'keys/c.ts': "import type { B } from './b.ts';",
    });
    expect(faults).toEqual([expect.stringContaining('a circle among 3 files (keys/a.ts → keys/b.ts → keys/a.ts)')]);
  });

  it('components of pages are also searched for circles', () => {
    write({ 'site/a.tsx': "import './b.tsx';", 'site/b.tsx': "import './a.tsx';" });
    expect(circles(src)).toHaveLength(1);
  });
});

it('the table allows no import that does not exist in src', () => {
  expect(unusedAllowances(path.resolve('src'))).toEqual([]);
  mkdirSync(path.join(src, 'keys'), { recursive: true });
  expect(unusedAllowances(src)).toContainEqual(expect.stringContaining('keys may import platform, but does not'));
});

describe('an export', () => {
  const unusedIn = (files: Record<string, string>, ...others: string[]): string[] => {
    write(files);
    return unusedExports(src, others);
  };

  it.each([
    ['export const a = 1;', 'a'],
    ['export async function a() {}', 'a'],
    ['export abstract class A {}', 'A'],
    ['export type A = string;', 'A'],
    ['const a = 1;\nconst c = 2;\nexport { c, a as b };', 'b'],
    ["export { type A, c } from './b.ts';", 'A'],
  ])('%s: is a fault if no other file imports the export', (code, name) => {
    const files = { 'keys/a.ts': `${code} // ${name}`, 'keys/b.ts': "import { c } from './a.ts'; // a b A" };
    expect(unusedIn(files)).toEqual([expect.stringMatching(`^src/keys/a\\.ts:[13] exports ${name}: `)]);
  });

  it.each([
    "import { type A, a } from './a.ts';",
    "export { type A, a } from './a.ts';",
    "import * as all from './a.ts';\nall.a satisfies all.A;",
    "const { a } = await import('./a.ts');\ntype A = import('./a.ts').A;",
    "/** @type {import('./a.ts').A} */\nimport { a as b } from './a.ts';",
  ])('%s: is used', (code) => {
    expect(
      unusedIn({ 'keys/a.ts': 'export type A = number;\nexport const a: A = 1;', 'keys/b.ts': code }),
    ).not.toContainEqual(expect.stringContaining('keys/a.ts'));
  });

  it('may exist for tests only', () => {
    const files = { 'src/a.ts': 'export const a = 1;', 'test/a.test.ts': "import { a } from '../src/a.ts';" };
    write(files);
    expect(unusedExports(path.join(src, 'src'), [path.join(src, 'test')])).toEqual([]);
    expect(unusedExports(path.join(src, 'src'), [])).toHaveLength(1);
  });
});

describe('owners of foreign libraries', () => {
  it.each([
    ['proxy/exchange.ts', 'uws-legacy', 'http'],
    ['proxy/exchange.ts', 'node:net', 'upstream'],
    ['http/server.ts', 'tls', 'upstream'],
    ['keys/cache.ts', 'ioredis', 'platform'],
    ['main.ts', 'postgres', 'platform'],
    ['main.ts', 'pino', 'observability'],
    ['catalog/listing.ts', 'ajv', 'http'],
  ])('%s may not import %s', (file, library, owner) => {
    const faults = faultsOf({ [file]: `import x from '${library}';` });
    expect(faults).toEqual([expect.stringContaining(`src/${file}:1 imports ${library}: only src/${owner}`)]);
  });

  it('a require counts as an import', () => {
    expect(faultsOf({ 'keys/cache.ts': "const x = require('ioredis');" })).toHaveLength(1);
  });

  it('a library without an owner is a fault, but a Node module is not', () => {
    const faults = faultsOf({ 'keys/cache.ts': "import 'left-pad';\nimport fs from 'node:fs';" });
    expect(faults).toEqual([expect.stringContaining('left-pad: this library has no owner')]);
  });
});

describe('the environment', () => {
  it.each(['process.env.PORT', 'const { env } = process', "process['env']"])(
    '%s is a fault in a file that is not an entry point',
    (code) => {
      expect(faultsOf({ 'keys/cache.ts': code })).toEqual([
        expect.stringContaining('src/keys/cache.ts:1 reads process.env'),
      ]);
    },
  );

  it('an import or process.env within a comment or a string is not a fault', () => {
    const code =
      "// import x from 'ioredis'\n/* process.env */\nconst url = 'http://x'; // process.env\nconst s = \"// \";";
    expect(faultsOf({ 'keys/cache.ts': code })).toEqual([]);
  });
});
