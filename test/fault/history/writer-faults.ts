import { setTimeout as sleep } from 'node:timers/promises';
import type { Stack } from '../stack.ts';
import type { WriterFault } from './plan.ts';

/** Suspends and kills writers, and lets them go on. */
export async function sufferWriters(stack: Stack, faults: readonly WriterFault[]): Promise<void> {
  await Promise.all(
    faults.map(async ({ kind, which, atMs, forMs }) => {
      const writer = which === 0 ? stack.writer : stack.secondWriter;
      await sleep(atMs);
      if (kind === 'killed') await writer.kill();
      else writer.signal('SIGSTOP');
      await sleep(forMs);
      if (kind === 'killed') await writer.ensure();
      else writer.signal('SIGCONT');
    }),
  );
}
