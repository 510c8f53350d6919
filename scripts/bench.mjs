// @ts-check
// `npm run bench`: measures the gateway next to its peers. It installs and starts what it needs, and stops everything that it
// started, also at Ctrl-C. bench/README.md says what is measured, and how.

import { checkNodeVersion, ensureBuilt, ensureDependencies } from './local/dependencies.mjs';
import { ensureRedisServer } from './local/redis-install.mjs';

/** @param {string} line */
const say = (line) => console.log(line);

async function main() {
  checkNodeVersion();
  ensureDependencies(say);
  // Imported only now: these modules import packages that were just installed.
  const { parseOptions, usage, UsageError } = await import('../bench/options.mjs');
  const { ensurePeerPackages, ensureSystemPackages } = await import('../bench/stage/install.mjs');
  const { runBench, stopAll } = await import('../bench/run.mjs');
  try {
    const args = process.argv.slice(2);
    const options = parseOptions(args);
    if (!options.list) {
      ensureBuilt(say);
      ensureRedisServer(say);
      ensurePeerPackages(say);
      ensureSystemPackages(say);
    }
    stopAtSignals(stopAll);
    const command = ['npm run bench', ...(args.length === 0 ? [] : ['--', ...args])].join(' ');
    if (!(await runBench(options, { say, command }))) process.exitCode = 1;
  } catch (error) {
    if (isStopping) return;
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n\n${usage}`);
    process.exitCode = 2;
  }
}

let isStopping = false;

/** @param {() => Promise<void>} stopAll */
function stopAtSignals(stopAll) {
  for (const signal of /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])) {
    process.on(signal, () => {
      // At a Ctrl-C the terminal and npm both send the signal, so it arrives twice.
      if (isStopping) return;
      isStopping = true;
      say('\nStopping everything that was started');
      stopAll().then(
        () => process.exit(130),
        (error) => {
          console.error(error instanceof Error ? error.message : error);
          process.exit(1);
        },
      );
    });
  }
}

main().catch((error) => {
  if (isStopping) return;
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
});
