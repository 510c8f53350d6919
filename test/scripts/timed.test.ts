import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { timed } from '../support/timed.ts';
import { until } from '../support/wait.ts';

const run = promisify(execFile);

it('measured time includes the time in which a process computes or waits', async () => {
  const computing = async (): Promise<void> => {
    const before = process.cpuUsage();
    while (process.cpuUsage(before).user < 200_000);
  };
  expect(await timed(computing)).toBeGreaterThan(100);
  // On a busy machine a part of it may be a wait for the processor.
  await until(async () => (await timed(() => run('sleep', ['0.2']))) > 190);
});

it('measured time excludes the time in which a process gets no processor', async () => {
  const began = performance.now();
  const tookMs = await timed(() =>
    run('sh', ['-c', `kill -STOP ${process.pid}; sleep 0.5; kill -CONT ${process.pid}`]),
  );
  expect(performance.now() - began - tookMs).toBeGreaterThan(400);
});
