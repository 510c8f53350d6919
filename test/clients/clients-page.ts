import { mkdirSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import type { Key } from '../integration/marketplace.ts';
import { scratchDir } from '../support/stores.ts';
import { type DemoMarket, textOf } from './demo-market.ts';
import { type Ended, run } from './programs.ts';

const page = readFileSync('docs/clients.md', 'utf8');
const blocksOf = (language: string): string[] =>
  Array.from(page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\``, 'gm')), ([, block = '']) => block);

/** docs/clients.md: all its snippets run unchanged, in one shell. */
export function clientsPageTests(demo: () => DemoMarket): void {
  const [preparation = '', ...shell] = blocksOf('sh');
  const scripts = blocksOf('js');
  const python = blocksOf('python');
  let buyer: Key;
  let ended: Ended;

  beforeAll(async () => {
    buyer = await demo().market.buyer(1);
    // Packages are looked up from the folder of the file that imports them.
    const folder = mkdtempSync(path.join(scratchDir(), 'snippets-'));
    symlinkSync(path.resolve('node_modules'), path.join(folder, 'node_modules'));
    mkdirSync(path.join(folder, 'js'));
    scripts.forEach((code, index) => {
      writeFileSync(path.join(folder, 'js', `${index}.mjs`), code);
    });
    writeFileSync(path.join(folder, 'snippet.py'), python.join('\n'));
    // One process imports one after the other: to start a process for each would take most of the time.
    writeFileSync(
      path.join(folder, 'all.mjs'),
      scripts.map((_, index) => `await import('./js/${index}.mjs');`).join('\n'),
    );
    const lines = ['set -e', preparation, ...shell, 'python3 snippet.py', `${process.execPath} all.mjs`];
    const env = { TOLLGATE_URL: demo().url, TOLLGATE_KEY: textOf(buyer) };
    ended = await run('sh', [], { cwd: folder, env, input: lines.join('\n') });
  });

  it('has a snippet for each client, and each snippet makes a call and shows its price', async () => {
    expect([ended.code, ended.errors]).toEqual([0, '']);
    const sections = page.split(/^## /m).slice(2);
    const without = sections
      .filter((section) => !/^```(?:sh|js|python)$/m.test(section))
      .map((text) => text.split('\n')[0]);
    // Their snippet is examples/browser.html.
    expect(without).toEqual(['Browsers']);
    // Curl's section has two calls, all others with a snippet one.
    const calls = sections.length;
    expect(ended.output.match(/(?:paid|X-ACF-Amount:) 0\.00\d/g)).toHaveLength(calls);
    const records = await demo().market.records(buyer);
    expect(records.map(({ outcome }) => outcome)).toEqual(Array(calls).fill('completed'));
  });

  it('names the versions that were tried, which are the installed ones', () => {
    const installed = (name: string): string =>
      (JSON.parse(readFileSync(`node_modules/${name}/package.json`, 'utf8')) as { version: string }).version;
    const rows = Array.from(page.matchAll(/^\| \[?`([^`]+)`\S* \| (\S+) \|/gm), ([, name = '', tried = '']) => [
      name,
      tried,
    ]);
    expect(rows.map(([name]) => name)).toContain('got');
    for (const [name = '', tried] of rows) expect([name, tried]).toEqual([name, installed(name)]);
  });
}
