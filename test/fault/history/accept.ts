import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Stack } from '../stack.ts';

/** What an operator does who goes on with the older Postgres: reads what is lost, and confirms it in writing. */
export async function acceptOlder({ programs }: Stack): Promise<void> {
  const { main, env } = programs;
  const child = spawn(process.execPath, [main, 'accept-postgres'], { env: { PATH: process.env.PATH, ...env } });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (bytes: Buffer) => {
      said += bytes.toString();
    });
  }
  child.stdin.end('yes\n');
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`accept-postgres ended with ${code}: ${said}`);
}
