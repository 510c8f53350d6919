// Runs programs as a person would in a shell. They run beside the test, which has the gateway on its own event loop.

import { spawn } from 'node:child_process';

export type Ended = { readonly code: number | null; readonly output: string; readonly errors: string };

/** How long a program may take; then it is killed and the test fails by its code. */
const MAX_RUN_MS = 20_000;

/** @param env besides PATH and HOME; nothing else of the environment reaches the program */
export async function run(
  command: string,
  args: readonly string[],
  { env = {}, cwd, input = '' }: { env?: Record<string, string>; cwd?: string; input?: string } = {},
): Promise<Ended> {
  const { PATH, HOME } = process.env;
  const child = spawn(command, args, { env: { PATH, HOME, ...env }, cwd, timeout: MAX_RUN_MS });
  const texts = [child.stdout, child.stderr].map(async (stream) => {
    let text = '';
    for await (const chunk of stream.setEncoding('utf8')) text += chunk;
    return text;
  });
  child.stdin.end(input);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', (cause) =>
      reject(new Error(`${command} is needed for this test; npm test installs it`, { cause })),
    );
    child.once('close', resolve);
  });
  const [output = '', errors = ''] = await Promise.all(texts);
  return { code, output, errors };
}
