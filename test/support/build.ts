import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, renameSync, rmdirSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { scratchDir } from './stores.ts';

/**
 * Compiles src/ into the folder of this test run and bundles its programs, for tests that start processes of their own: before
 * version 22 Node cannot run TypeScript. Later calls of the same test run return the folder that the first one made.
 *
 * @returns the folder with the compiled modules
 */
export const buildSources = (): string => madeOnce('build', compile);

function compile(out: string): void {
  const project = path.resolve('.');
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
export const builtWeb = (): string =>
  madeOnce('web', (out) => {
    const result = spawnSync(process.execPath, ['scripts/build-web.mjs', out], { encoding: 'utf8' });
    if (result.status !== 0) throw new Error(`the pages cannot be built: ${result.stdout}${result.stderr}`);
  });

/**
 * Makes a folder of this test run, if no test file has made it. Who comes while another file makes it waits: several files need it at
 * the beginning of a run, and each making its own would keep both cores busy for seconds.
 */
function madeOnce(name: string, make: (out: string) => void): string {
  const folder = path.join(scratchDir(), name);
  const begun = `${folder}.begun`;
  const deadline = performance.now() + 120_000;
  while (!existsSync(folder)) {
    if (isOurs(begun)) {
      // A file that waited may have the turn only after the folder was made.
      try {
        if (!existsSync(folder)) {
          const out = mkdtempSync(`${folder}-`);
          make(out);
          renameSync(out, folder);
        }
      } finally {
        rmdirSync(begun);
      }
    } else if (performance.now() > deadline) {
      throw new Error(`another test file has begun to make ${folder}, and has not finished`);
    } else {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);
    }
  }
  return folder;
}

/** Whether we are the one who makes this folder. */
function isOurs(folder: string): boolean {
  try {
    mkdirSync(folder);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    return false;
  }
}
