import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { fingerprintOf, isInstalled, nodeProblem } from '../../scripts/local/dependencies.mjs';
import { writeJson } from '../../scripts/local/files.mjs';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'tollgate-dependencies-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

describe('a version of Node', () => {
  it.each([
    ['20.19.0', '2.36'],
    ['22.12.0', '2.36'],
    ['23.1.0', '2.17'],
    ['24.0.0', '2.38'],
    ['26.1.0', '2.41'],
    ['24.0.0', '3.0'],
    ['24.0.0', undefined],
  ])('%s with glibc %s can be tried', (node, glibc) => expect(nodeProblem(node, glibc)).toBeNull());

  it.each([
    ['18.20.0', '2.41', 'Tollgate needs Node 20.19 or newer; this is 18.20.0'],
    ['20.18.9', undefined, 'Tollgate needs Node 20.19 or newer; this is 20.18.9'],
    ['24.0.0', '2.37', 'Node 24.0.0 needs glibc 2.38 for uWebSockets.js, and this system has 2.37. Use Node 22 or 20'],
    ['26.1.0', '2.9', 'Node 26.1.0 needs glibc 2.38'],
  ])('%s with glibc %s is refused, with the reason', (node, glibc, problem) =>
    expect(nodeProblem(node, glibc)).toContain(problem),
  );
});

describe('installed packages', () => {
  const root = { '': { version: '0.1.0' } };
  const ajv = { 'node_modules/ajv': { version: '8.0.0', integrity: 'sha512-a' } };
  const foreign = { 'node_modules/binary-for-another-system': { version: '1.0.0', optional: true } };
  const check = (wanted: object, installed: object | null): boolean => {
    const [lockFile, installedFile] = [path.join(dir, 'lock.json'), path.join(dir, 'installed.json')];
    writeJson(lockFile, { packages: { ...root, ...wanted } });
    if (installed !== null) writeJson(installedFile, { packages: installed });
    return isInstalled(lockFile, installedFile);
  };

  it('are complete when every package of the lockfile is there, except those for other systems', () => {
    expect(check({ ...ajv, ...foreign }, ajv)).toBe(true);
  });

  it.each([
    ['nothing was ever installed', ajv, null],
    ['one is missing', { ...ajv, 'node_modules/pino': { version: '1.0.0' } }, ajv],
    ['one has another version', ajv, { 'node_modules/ajv': { version: '8.0.1', integrity: 'sha512-a' } }],
    ['one has other content', ajv, { 'node_modules/ajv': { version: '8.0.0', integrity: 'sha512-b' } }],
    ['one is no longer needed', {}, ajv],
  ])('are not complete when %s', (_, wanted, installed) => {
    expect(check(wanted, installed)).toBe(false);
  });
});

describe('the fingerprint of the sources', () => {
  it('stays the same while nothing changes, and differs when a file is added, edited or removed', () => {
    mkdirSync(path.join(dir, 'src'));
    const file = (name: string) => path.join(dir, 'src', name);
    const seen: string[] = [];
    const take = () => seen.push(fingerprintOf([path.join(dir, 'src'), path.join(dir, 'tsconfig.json')]));
    writeFileSync(file('a.ts'), 'one');
    take();
    take();
    expect(seen[1]).toBe(seen[0]);
    writeFileSync(file('b.ts'), 'two');
    take();
    writeFileSync(file('a.ts'), 'other');
    take();
    rmSync(file('b.ts'));
    take();
    writeFileSync(path.join(dir, 'tsconfig.json'), '{}');
    take();
    expect(new Set(seen).size).toBe(seen.length - 1);
  });
});
