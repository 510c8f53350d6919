import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { findPromtool } from '../../scripts/local/promtool-install.mjs';
import { scratchDir } from '../support/stores.ts';

describe('promtool', () => {
  it('is found on the PATH', () => {
    const folder = mkdtempSync(path.join(scratchDir(), 'promtool-'));
    writeFileSync(path.join(folder, 'promtool'), '#!/bin/sh\n', { mode: 0o755 });
    expect(findPromtool([folder])).toBe(`${folder}/promtool`);
  });

  it('is required: without it the run fails, and says how to install it', () => {
    const folder = mkdtempSync(path.join(scratchDir(), 'promtool-'));
    expect(() => findPromtool([folder])).toThrow(/need promtool.*Debian, Ubuntu +sudo apt-get install/s);
  });
});
