// The program `main.js accept-postgres`, as an operator runs it.

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { buildSources } from './build.ts';

/** A run takes a second or two. One that takes so long is killed: its exit code is null. */
const RUN_MS = 30_000;

/** What the program asks for, in what it has printed. */
export const yesOf = (printed: string): string => /yes [0-9a-f]{12}/.exec(printed)?.[0] ?? '';

/** @param run.answer made of what it has printed before it asks */
export async function runAcceptPostgres(run: {
  readonly env: Readonly<Record<string, string>>;
  readonly options?: readonly string[];
  readonly answer?: (printed: string) => string;
}): Promise<{ readonly code: number | null; readonly printed: string }> {
  const { env, options = [], answer = yesOf } = run;
  const program = spawn(process.execPath, [path.join(buildSources(), 'main.js'), 'accept-postgres', ...options], {
    env: { ...process.env, ...env },
  });
  let printed = '';
  for (const output of [program.stdout, program.stderr])
    output.on('data', (chunk: Buffer) => {
      printed += chunk;
      if (program.stdin.writable && printed.includes('type: yes')) program.stdin.end(`${answer(printed)}\n`);
    });
  const timer = setTimeout(() => program.kill('SIGKILL'), RUN_MS);
  const [code] = (await once(program, 'close')) as [number | null];
  clearTimeout(timer);
  return { code, printed };
}
