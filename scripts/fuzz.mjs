// @ts-check
// `npm run fuzz -- --seconds N [--seed S]`: sends random octets to the upstream parser for N seconds, and then to a running
// gateway for N seconds. A failure is printed with its seed. Add the input that failed to the corpora in test/conformance or
// test/upstream.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { checkNodeVersion, ensureDependencies, projectDir } from './local/dependencies.mjs';
import { ensureRedisServer } from './local/redis-install.mjs';

const usage = 'npm run fuzz -- [--seconds N] [--seed S]';

function readOptions() {
  const { values } = parseArgs({ options: { seconds: { type: 'string' }, seed: { type: 'string' } } });
  const seconds = Number(values.seconds ?? 30);
  const seed = values.seed === undefined ? Date.now() % 2 ** 31 : Number(values.seed);
  if (!(seconds > 0 && seconds <= 86_400)) throw new Error('--seconds: a number from 1 to 86400');
  if (!Number.isSafeInteger(seed)) throw new Error('--seed: a whole number');
  return { seconds, seed };
}

try {
  const { seconds, seed } = readOptions();
  checkNodeVersion();
  ensureDependencies(console.log);
  ensureRedisServer(console.log);
  const { status } = spawnSync(path.join('node_modules', '.bin', 'vitest'), ['run', 'test/fuzz'], {
    cwd: projectDir,
    stdio: 'inherit',
    env: { ...process.env, FUZZ_SECONDS: String(seconds), FUZZ_SEED: String(seed) },
  });
  process.exitCode = status ?? 1;
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n${usage}`);
  process.exitCode = 2;
}
