// What a caller does with the OpenAPI document: generates types from it, compiles a program against them, and runs it.

import { execFile } from 'node:child_process';
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const bin = (name: string): string => path.resolve('node_modules', '.bin', name);

/**
 * The folder is in node_modules/.cache, so that compiler and Node find the program's packages, and linters do not look at it. The
 * program lies in the repository as text: before its types are generated, it does not compile.
 *
 * @returns the folder with `gateway.d.ts`, made from the document, and the program
 */
export async function generateClient(document: string): Promise<{ dir: string; remove(): void }> {
  const cache = path.resolve('node_modules', '.cache');
  mkdirSync(cache, { recursive: true });
  const dir = mkdtempSync(path.join(cache, 'generated-client-'));
  writeFileSync(path.join(dir, 'openapi.json'), document);
  writeFileSync(path.join(dir, 'package.json'), JSON.stringify({ type: 'module' }));
  copyFileSync('test/openapi/program/main.ts.txt', path.join(dir, 'main.ts'));
  const hook = path.resolve('test/openapi/typescript-for-generator.mjs');
  const generator = path.resolve('node_modules/openapi-typescript/bin/cli.js');
  await run(process.execPath, ['--import', hook, generator, 'openapi.json', '-o', 'gateway.d.ts'], { cwd: dir });
  return { dir, remove: () => rmSync(dir, { recursive: true }) };
}

/** Rejects with the compiler's output if the program has a type error, or lacks one that it expects. */
export async function compileClient(dir: string): Promise<void> {
  const compilerOptions = {
    strict: true,
    noUncheckedIndexedAccess: true,
    target: 'es2023',
    module: 'nodenext',
    skipLibCheck: true,
    types: ['node'],
  };
  writeFileSync(path.join(dir, 'tsconfig.json'), JSON.stringify({ compilerOptions, files: ['main.ts'] }));
  await run(bin('tsc'), [], { cwd: dir }).catch((error: { stdout?: string }) => {
    throw new Error(`tsc: ${error.stdout}`);
  });
}

export async function runClient(dir: string, baseUrl: string): Promise<Record<string, unknown>> {
  const { stdout } = await run(process.execPath, ['main.js', baseUrl], { cwd: dir });
  return JSON.parse(stdout) as Record<string, unknown>;
}
