import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

export type Listening = { readonly child: ChildProcess; readonly port: number };

/** Starts a program that takes PORT and says on which port it listens, as the services in examples/ do; a `.py` in Python. */
export async function startListening(file: string, env: Readonly<Record<string, string>> = {}): Promise<Listening> {
  const { PATH } = process.env;
  const child = spawn(file.endsWith('.py') ? 'python3' : process.execPath, [file], {
    env: { PATH, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = (await once(child.stdout.setEncoding('utf8'), 'data')) as [string];
  return { child, port: Number(/port (\d+)/.exec(line)?.[1]) };
}
