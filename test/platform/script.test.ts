import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { defineScript, loadScript } from '../../src/platform/script.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'scripts-'));
  mkdirSync(path.join(folder, 'scripts', 'includes'), { recursive: true });
});
afterEach(() => rmSync(folder, { recursive: true }));

const write = (name: string, ...lines: string[]): void =>
  writeFileSync(path.join(folder, 'scripts', name), `${lines.join('\n')}\n`);
const load = (name: string) => loadScript(pathToFileURL(path.join(folder, 'module.ts')).href, name);

describe('a script', () => {
  it('contains each included file in place of its include line, wherever the file is, and the digest covers the whole', () => {
    write('includes/one.lua', 'local one = 1');
    write('includes/two.lua', '--- @include "../apart.lua"', 'local two = apart');
    write('apart.lua', "local apart = '$&'");
    write('sum.lua', '-- sum', '--- @include "includes/one.lua"', 'do', '  --- @include "includes/two.lua"', 'end');
    const source = "-- sum\nlocal one = 1\ndo\nlocal apart = '$&'\nlocal two = apart\nend\n";
    expect(load('sum')).toEqual(defineScript('sum', source));
  });

  it('that includes a missing file is refused, and the error names the file', () => {
    write('script.lua', '--- @include "includes/none.lua"');
    expect(() => load('script')).toThrow('includes/none.lua');
  });

  it.each([
    ['itself', ['--- @include "script.lua"']],
    ['a file twice', ['--- @include "includes/part.lua"', '--- @include "includes/part.lua"']],
    ['a file that another included', ['--- @include "includes/other.lua"', '--- @include "includes/part.lua"']],
    ['files in a circle', ['--- @include "includes/back.lua"']],
  ])('that includes %s is refused', (_, lines) => {
    write('includes/part.lua', 'local part = 1');
    write('includes/other.lua', '--- @include "part.lua"');
    write('includes/back.lua', '--- @include "../script.lua"');
    write('script.lua', ...lines);
    expect(() => load('script')).toThrow(/(part|script)\.lua is included twice/);
  });
});
