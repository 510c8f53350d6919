import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { buildSources } from '../support/build.ts';

let build: string;

beforeAll(() => {
  build = buildSources();
});

/** The files that a bundled file loads, with itself. What it loads later, by `import()`, is not among them. */
function loadedBy(file: string, found = new Set<string>()): Set<string> {
  if (found.has(file)) return found;
  found.add(file);
  for (const [, name] of readFileSync(file, 'utf8').matchAll(/^import .*?"(\.[^"]*)";$/gm)) {
    loadedBy(path.join(path.dirname(file), name as string), found);
  }
  return found;
}

/** The packages that the file `name`, or the chunk of that name, loads at its start. */
function packagesOf(name: string): Set<string> {
  const chunk = readdirSync(path.join(build, 'chunks')).find(
    (each) => each.startsWith(`${name}-`) && each.endsWith('.js'),
  );
  const packages = new Set<string>();
  for (const file of loadedBy(path.join(build, chunk === undefined ? `${name}.js` : `chunks/${chunk}`))) {
    const { sources } = JSON.parse(readFileSync(`${file}.map`, 'utf8')) as { sources: string[] };
    for (const source of sources) {
      const found = /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(source)?.[1];
      if (found !== undefined) packages.add(found);
    }
  }
  return packages;
}

describe('the programs of a build', () => {
  it('load at their start only what each of them needs', () => {
    const [main, writer, gateway, mcp, thread] = [
      'main',
      'writer',
      'gateway',
      'endpoint',
      'catalog/openapi-import/worker',
    ].map(packagesOf);
    const [validator, protocol] = ['@seriousme/openapi-schema-validator', '@modelcontextprotocol/server'];
    const loads = (of: Set<string> | undefined): boolean[] =>
      ['ajv', 'postgres', 'ioredis', protocol, validator].map((each) => of?.has(each as string) ?? false);
    expect(loads(main)).toEqual([true, false, false, false, false]);
    expect(loads(writer)).toEqual([true, true, true, false, false]);
    expect(loads(gateway)).toEqual([true, true, true, false, false]);
    expect(loads(mcp)).toEqual([true, true, true, true, false]);
    expect(loads(thread)).toEqual([true, false, false, false, true]);
  });

  it('find the files beside their modules', () => {
    const asked = readdirSync(path.join(build, 'chunks'), { encoding: 'utf8' })
      .filter((name) => name.endsWith('.js'))
      .map((name) => readFileSync(path.join(build, 'chunks', name), 'utf8'))
      .flatMap((code) => [...code.matchAll(/new URL\(['"](\.\.\/[^'"]+\.js)['"], import\.meta\.url\)/g)])
      .map(([, name]) => path.join(build, 'chunks', name as string));
    expect(asked.length).toBeGreaterThan(5);
    expect(asked.filter((file) => !existsSync(file))).toEqual([]);
  });
});
