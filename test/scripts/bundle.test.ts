import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildSources } from '../support/build.ts';

let folder: string;

beforeAll(() => {
  folder = path.join(buildSources(), 'bundle');
});

/** The files that a file loads, with itself. What it loads later, by `import()`, is not among them. */
function loadedBy(name: string, found = new Set<string>()): Set<string> {
  if (found.has(name)) return found;
  found.add(name);
  const code = readFileSync(path.join(folder, name), 'utf8');
  for (const [, other] of code.matchAll(/^import .*?"\.\/([^"]+)";$/gm)) loadedBy(other as string, found);
  return found;
}

/** Which of these packages the file loads. */
function packagesIn(name: string, packages: readonly string[]): string[] {
  const sources = [...loadedBy(name)].flatMap(
    (each) => (JSON.parse(readFileSync(path.join(folder, `${each}.map`), 'utf8')) as { sources: string[] }).sources,
  );
  return packages.filter((each) => sources.some((source) => source.includes(`/node_modules/${each}/`)));
}

describe('the programs of a build', () => {
  it.each([
    ['main.js', []],
    ['writer.js', ['postgres', 'ioredis']],
    ['gateway.js', ['ajv', 'postgres', 'ioredis']],
    ['endpoint.js', ['ajv', 'postgres', 'ioredis', '@modelcontextprotocol/server']],
  ])('load only what a role needs: %s', (name, packages) => {
    const all = [
      'ajv',
      'postgres',
      'ioredis',
      '@modelcontextprotocol/server',
      '@seriousme/openapi-schema-validator',
      'yaml',
    ];
    expect(packagesIn(name, all)).toEqual(packages);
  });

  it('find the files that lie beside their modules', () => {
    const code = readdirSync(folder)
      .filter((name) => name.endsWith('.js'))
      .map((name) => readFileSync(path.join(folder, name), 'utf8'));
    const modules = code.flatMap((each) => [...each.matchAll(/new URL\(["'](\.\.\/[^"']+)["'], import\.meta\.url\)/g)]);
    expect(modules.map(([, name]) => name)).toContain('../ledger/scripts.js');
    for (const [, name] of modules) expect(existsSync(path.join(folder, name as string)), name).toBe(true);
  });
});
