import { mkdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { ensureClientPrograms } from '../../scripts/local/client-programs.mjs';
import { scratchDir } from '../support/stores.ts';

afterEach(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

it('installed curl and Python are left alone, and a missing one is named if nothing may be installed', () => {
  const said: string[] = [];
  ensureClientPrograms((line) => said.push(line));
  expect(said).toEqual([]);

  // Only root may install, and this process is not root any more as far as it can tell.
  vi.spyOn(process, 'getuid').mockReturnValue(1000);
  const folder = path.join(scratchDir(), `programs-${process.pid}`);
  mkdirSync(folder);
  symlinkSync(process.execPath, path.join(folder, 'curl'));
  vi.stubEnv('PATH', folder);
  expect(() => ensureClientPrograms((line) => said.push(line))).toThrow('The tests need python3 on the PATH');
  expect(said).toEqual([]);
});
