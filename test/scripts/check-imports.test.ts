import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { checkImports, unusedAllowances } from '../../scripts/check-imports.mjs';

let src: string;
beforeEach(() => {
  src = mkdtempSync(path.join(tmpdir(), 'tollgate-imports-'));
});
afterEach(() => rmSync(src, { recursive: true, force: true }));

function faultsOf(files: Record<string, string>): string[] {
  for (const [name, code] of Object.entries(files)) {
    const file = path.join(src, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, code);
  }
  return checkImports(src);
}

describe('import directions', () => {
  it('a tree whose imports point down only has no fault', () => {
    const faults = faultsOf({
      'main.ts': "import { env } from './config/env.ts';\nimport './roles/gateway.ts';\nprocess.env.PORT;",
      'roles/gateway.ts': "import { serve } from '../http/server.ts';\nimport type { Env } from '../config/env.ts';",
      'config/env.ts': "import Ajv from 'ajv';\nexport const env = process.env;",
      'http/server.ts': "import { Gate } from '../gate/gate.ts';\nimport type { App } from 'uws-current';",
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

  it('a circle of imports is a fault', () => {
    const faults = faultsOf({
      'keys/a.ts': "import './b.ts';",
      'keys/b.ts': "import './c.ts';",
      'keys/c.ts': "import { type A, a } from './a.ts';",
    });
    expect(faults).toEqual([expect.stringMatching(/a circle \(.*keys\/a\.ts.* → .*\)/)]);
  });

  it('two files may know the types of each other', () => {
    expect(
      faultsOf({ 'keys/a.ts': "import { b } from './b.ts';", 'keys/b.ts': "import type { A } from './a.ts';" }),
    ).toEqual([]);
  });
});

it('the table allows no import that src does not have', () => {
  expect(unusedAllowances(path.resolve('src'))).toEqual([]);
  mkdirSync(path.join(src, 'keys'), { recursive: true });
  expect(unusedAllowances(src)).toContainEqual(expect.stringContaining('keys may import platform, but does not'));
});

describe('owners of foreign libraries', () => {
  it.each([
    ['proxy/exchange.ts', 'uws-legacy', 'http'],
    ['proxy/exchange.ts', 'node:net', 'upstream'],
    ['http/server.ts', 'tls', 'upstream'],
    ['keys/cache.ts', 'ioredis', 'platform'],
    ['main.ts', 'postgres', 'platform'],
    ['main.ts', 'pino', 'observability'],
    ['catalog/listing.ts', 'ajv', 'config'],
  ])('%s may not import %s', (file, library, owner) => {
    const faults = faultsOf({ [file]: `import x from '${library}';` });
    expect(faults).toEqual([expect.stringContaining(`src/${file}:1 imports ${library}: only src/${owner}`)]);
  });

  it('a require counts as an import', () => {
    expect(faultsOf({ 'keys/cache.ts': "const x = require('ioredis');" })).toHaveLength(1);
  });

  it('a library without an owner is a fault, a module of Node is not', () => {
    const faults = faultsOf({ 'keys/cache.ts': "import 'left-pad';\nimport fs from 'node:fs';" });
    expect(faults).toEqual([expect.stringContaining('left-pad: this library has no owner')]);
  });
});

describe('the environment', () => {
  it.each(['process.env.PORT', 'const { env } = process', "process['env']"])(
    '%s is a fault in a file that is not an entry',
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
