import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { findChromium } from '../../scripts/local/chromium-install.mjs';
import { scratchDir } from '../support/stores.ts';

/** @returns a new folder with programs of these names */
function folderWith(...names: string[]): string {
  const folder = mkdtempSync(path.join(scratchDir(), 'browsers-'));
  for (const name of names) writeFileSync(path.join(folder, name), '#!/bin/sh\n', { mode: 0o755 });
  return folder;
}

describe('the browser of the tests', () => {
  it('is the headless shell, else Chromium, else Chrome, wherever on the PATH they are', () => {
    const [chrome, chromium, shell] = [
      folderWith('google-chrome'),
      folderWith('chromium'),
      folderWith('chromium-headless-shell'),
    ];
    expect(findChromium([chrome, chromium, shell], [])).toBe(`${shell}/chromium-headless-shell`);
    expect(findChromium([chrome, chromium], [])).toBe(`${chromium}/chromium`);
    expect(findChromium([chrome], [])).toBe(`${chrome}/google-chrome`);
  });

  it('is found in the applications folder of macOS', () => {
    const application = `${folderWith('Google Chrome')}/Google Chrome`;
    expect(findChromium([folderWith()], [application])).toBe(application);
  });

  it('is required: without one the run fails, and says how to install it', () => {
    expect(() => findChromium([folderWith('firefox')], [])).toThrow(
      /^The browser tests need Chromium or Chrome.*Debian +sudo apt-get install chromium/s,
    );
  });
});
