import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { scratchDir } from './stores.ts';

/**
 * Compiles src/ into the run's folder, for tests that start processes of their own: Node runs no TypeScript before 22.
 *
 * @returns the folder with the compiled modules
 */
export function buildSources(): string {
  const project = path.resolve('.');
  const out = mkdtempSync(path.join(scratchDir(), 'build-'));
  // Type errors are the type check's to report.
  const tsc = path.join(project, 'node_modules', '.bin', 'tsc');
  const result = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--outDir', out], { cwd: project, encoding: 'utf8' });
  if (!existsSync(path.join(out, 'ledger', 'writer.js')))
    throw new Error(`tsc failed: ${result.stdout}${result.stderr}`);
  cpSync(path.join(project, 'src'), out, {
    recursive: true,
    filter: (source) => !path.extname(source) || source.endsWith('.lua'),
  });
  cpSync(path.join(project, 'migrations'), path.join(out, 'migrations'), { recursive: true });
  symlinkSync(path.join(project, 'node_modules'), path.join(out, 'node_modules'));
  return out;
}
