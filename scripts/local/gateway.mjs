// @ts-check
// Starts the gateway process of the local stack.

import path from 'node:path';
import { tryGet } from './api.mjs';
import { projectDir } from './dependencies.mjs';
import { killProcess, spawnOwned, waitUntilReady } from './processes.mjs';

const readyTimeoutMs = 40_000;

/**
 * Starts `dist/main.js all` and waits until it can serve. Its `/readyz` answers 503 with the status `starting` until `readyFile`
 * exists. So other programs see the gateway as ready only when the whole stack is.
 * @param {object} options
 * @param {string} options.runDir
 * @param {string} options.logFile
 * @param {string} options.baseUrl
 * @param {string} options.readyFile
 * @param {NodeJS.ProcessEnv} options.env
 * @param {() => void} options.throwIfStopped
 */
export async function startGateway({ runDir, logFile, baseUrl, readyFile, env, throwIfStopped }) {
  const child = spawnOwned({
    runDir,
    name: 'gateway',
    command: process.execPath,
    args: [path.join('dist', 'main.js'), 'all'],
    cwd: projectDir,
    env: { ...env, TOLLGATE_READY_FILE: readyFile },
    logFile,
  });
  try {
    const isReady = async () => {
      throwIfStopped();
      // The gateway says `starting` when everything works and only `readyFile` is missing.
      return (await tryGet(`${baseUrl}/readyz`))?.body.status === 'starting';
    };
    await waitUntilReady(child, isReady, { timeoutMs: readyTimeoutMs, intervalMs: 100, logFile });
  } catch (error) {
    await killProcess(child.record);
    child.forget();
    throw error;
  }
  return child;
}
