// @ts-check
// `npm run seed`: runs dist/seed.js on the stores that DATABASE_URL and REDIS_URL name, or else on those of the stack that
// `npm start` runs here.

import { spawnSync } from 'node:child_process';
import path from 'node:path';
import { checkNodeVersion, ensureBuilt, ensureDependencies, projectDir } from './local/dependencies.mjs';
import { readJson } from './local/files.mjs';
import { dataDirOf, filesOf } from './local/settings.mjs';

/**
 * @param {NodeJS.ProcessEnv} env
 * @returns {NodeJS.ProcessEnv}
 */
function withStores(env) {
  if (env.DATABASE_URL && env.REDIS_URL) return env;
  const dataDir = dataDirOf(env);
  const stack = readJson(filesOf(dataDir).stack);
  if (stack === null) {
    throw new Error(
      `Nothing runs with the data in ${dataDir}. Start it first (npm start), ` +
        'or set DATABASE_URL and REDIS_URL to the stores of another installation.',
    );
  }
  return { ...env, DATABASE_URL: env.DATABASE_URL || stack.database_url, REDIS_URL: env.REDIS_URL || stack.redis_url };
}

/** @returns {number} exit code */
function main() {
  checkNodeVersion();
  const env = withStores(process.env);
  const say = (/** @type {string} */ line) => console.error(line);
  ensureDependencies(say);
  ensureBuilt(say);
  const program = path.join(projectDir, 'dist', 'seed.js');
  const result = spawnSync(process.execPath, [program, ...process.argv.slice(2)], {
    stdio: 'inherit',
    // npm runs scripts in the project's folder, but the user gives --out relative to the folder where npm was called.
    cwd: process.env.INIT_CWD ?? process.cwd(),
    env,
  });
  if (result.error) throw result.error;
  return result.status ?? 1;
}

try {
  process.exitCode = main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
