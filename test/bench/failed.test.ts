import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, it } from 'vitest';
import { freePort } from '../../scripts/local/ports.mjs';

/** Runs `body` in a process of its own, which has to end by itself. @returns what the process printed */
async function outputOf(body: string): Promise<string> {
  const child = spawn(process.execPath, ['--input-type=module', '--eval', body], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const late = setTimeout(() => child.kill('SIGKILL'), 15_000);
  let output = '';
  child.stdout.on('data', (chunk) => {
    output += chunk;
  });
  const [code, signal] = await once(child, 'close');
  clearTimeout(late);
  expect([code, signal]).toEqual([0, null]);
  return output;
}

it('the benchmark ends even if the load of a measurement fails', async () => {
  const output = await outputOf(`
    import { measure } from './bench/measure/sample.mjs';
    import { nothingWatched } from './bench/peers/peer.mjs';
    const stage = { watched: [], scratch: { assertInUse() { throw new Error('no load today'); } } };
    const peer = { name: 'a', host: '127.0.0.1', port: 1, prefix: '/', authFiles: null, watched: nothingWatched() };
    await measure(stage, peer, 'wrk', {}, { connections: 1, seconds: 1, processors: 1 })
      .catch(({ message }) => console.log(message));
  `);
  expect(output).toBe('no load today\n');
});

it('the benchmark ends even if the Redis of a peer is gone', async () => {
  const output = await outputOf(`
    import { emptyUsageStream } from './bench/peers/peer.mjs';
    await emptyUsageStream('redis://127.0.0.1:${await freePort()}').catch(() => console.log('failed'));
  `);
  expect(output).toBe('failed\n');
});
