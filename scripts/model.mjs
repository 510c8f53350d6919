// @ts-check
// `npm run model [-- --deep]`: explores the model of what faults do to wallets (test/model/), and says how many states there were.
// With `--deep` each history has one fault more, and at most `--states` states of a scenario are explored.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { checkNodeVersion, ensureDependencies, projectDir } from './local/dependencies.mjs';

const usage = 'npm run model -- [--deep] [--states N]';

try {
  const { values } = parseArgs({ options: { deep: { type: 'boolean' }, states: { type: 'string' } } });
  // 12 million states take about 1.4 GB.
  const states = Number(values.states ?? 12_000_000);
  if (!Number.isSafeInteger(states) || states <= 0) throw new Error('--states: a whole number');
  checkNodeVersion();
  ensureDependencies(console.log);
  const args = ['run', '--config', 'vitest.unit.config.ts', 'test/model'];
  const { status } = spawnSync(path.join('node_modules', '.bin', 'vitest'), args, {
    cwd: projectDir,
    stdio: 'inherit',
    env: { ...process.env, ...(values.deep ? { MODEL_DEEP: String(states) } : {}) },
  });
  process.exitCode = status ?? 1;
} catch (error) {
  console.error(`${error instanceof Error ? error.message : error}\n${usage}`);
  process.exitCode = 2;
}
