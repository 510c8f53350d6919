import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, renameSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { scratchDir } from './stores.ts';

/**
 * Compiles src/ into the folder of this test run and bundles its programs, for tests that start processes of their own: before
 * version 22 Node cannot run TypeScript. Later calls of the same test run return the folder that the first one made.
 *
 * @returns the folder with the compiled modules
 */
export function buildSources(): string {
  const shared = path.join(scratchDir(), 'build');
  if (existsSync(shared)) return shared;
  const project = path.resolve('.');
  const out = mkdtempSync(path.join(scratchDir(), 'build-'));
  // Types are left to `npm run check`: without them this takes a third of the time.
  const tsc = path.join(project, 'node_modules', '.bin', 'tsc');
  const result = spawnSync(tsc, ['-p', 'tsconfig.build.json', '--noCheck', '--outDir', out], {
    cwd: project,
    encoding: 'utf8',
  });
  if (!existsSync(path.join(out, 'main.js'))) throw new Error(`tsc failed: ${result.stdout}${result.stderr}`);
  const bundled = spawnSync(process.execPath, ['scripts/bundle.mjs', out], { encoding: 'utf8' });
  if (bundled.status !== 0) throw new Error(`the programs cannot be bundled: ${bundled.stdout}${bundled.stderr}`);
  cpSync(path.join(project, 'src'), out, {
    recursive: true,
    filter: (source) => ['', '.lua', '.txt'].includes(path.extname(source)),
  });
  cpSync(path.join(project, 'migrations'), path.join(out, 'migrations'), { recursive: true });
  // package.json says that these are ES modules. Without it Node would parse each file twice.
  cpSync(path.join(project, 'package.json'), path.join(out, 'package.json'));
  symlinkSync(path.join(project, 'node_modules'), path.join(out, 'node_modules'));
  try {
    renameSync(out, shared);
    return shared;
  } catch (error) {
    // Another test file has built them meanwhile.
    if ((error as NodeJS.ErrnoException).code !== 'ENOTEMPTY') throw error;
    return out;
  }
}

/**
 * The thread that reads OpenAPI documents, for a gateway that runs from sources. The first call compiles them, so a test that sends
 * documents calls this before.
 */
export const importWorker = (): URL => pathToFileURL(path.join(buildSources(), 'catalog/openapi-import/worker.js'));

/**
 * Builds the pages of web/ into the folder of this test run, and returns their folder. Later calls of the same test run return what
 * the first one made.
 */
export function builtWeb(): string {
  const shared = path.join(scratchDir(), 'web');
  if (existsSync(shared)) return shared;
  const out = mkdtempSync(path.join(scratchDir(), 'web-'));
  const result = spawnSync(process.execPath, ['scripts/build-web.mjs', out], { encoding: 'utf8' });
  if (result.status !== 0) throw new Error(`the pages cannot be built: ${result.stdout}${result.stderr}`);
  try {
    renameSync(out, shared);
  } catch (error) {
    // Another test file was faster.
    if (!existsSync(shared)) throw error;
  }
  return shared;
}
