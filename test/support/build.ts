import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, renameSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { scratchDir } from './stores.ts';

/**
 * Compiles src/ into the run's folder, for tests that start processes of their own: Node runs no TypeScript before 22.
 * Whoever comes later finds what the first made.
 *
 * @returns the folder with the compiled modules
 */
export function buildSources(): string {
  const shared = path.join(scratchDir(), 'build');
  if (existsSync(shared)) return shared;
  const project = path.resolve('.');
  const out = mkdtempSync(path.join(scratchDir(), 'build-'));
  // Type errors are the type check's to report.
  const tsc = path.join(project, 'node_modules', '.bin', 'tsc');
  const result = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', out], { cwd: project, encoding: 'utf8' });
  if (!existsSync(path.join(out, 'ledger', 'writing', 'writer.js')))
    throw new Error(`tsc failed: ${result.stdout}${result.stderr}`);
  cpSync(path.join(project, 'src'), out, {
    recursive: true,
    filter: (source) => !path.extname(source) || source.endsWith('.lua'),
  });
  cpSync(path.join(project, 'migrations'), path.join(out, 'migrations'), { recursive: true });
  // That these are ES modules; without it Node would parse each file twice.
  cpSync(path.join(project, 'package.json'), path.join(out, 'package.json'));
  symlinkSync(path.join(project, 'node_modules'), path.join(out, 'node_modules'));
  try {
    renameSync(out, shared);
    return shared;
  } catch (error) {
    // Another test file was quicker.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    return out;
  }
}
