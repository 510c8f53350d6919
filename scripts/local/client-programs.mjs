// @ts-check
// Makes sure that there are curl and Python: they are clients that the tests call with (test/clients).

import { spawnSync } from 'node:child_process';
import { canInstall, installPackages } from './apt.mjs';

/** Each has a package of the same name on Debian and Ubuntu. */
const programs = ['curl', 'python3'];

/** @returns {string[]} the programs that cannot be started */
const missing = () =>
  programs.filter((name) => spawnSync(name, ['--version'], { stdio: 'ignore', timeout: 10_000 }).status !== 0);

/**
 * Installs what is missing on Debian and Ubuntu as root. Elsewhere throws an error that says what is missing.
 * @param {(line: string) => void} say
 */
export function ensureClientPrograms(say) {
  const names = missing();
  if (names.length === 0) return;
  if (canInstall()) {
    say(`Installing ${names.join(' and ')} with apt-get (clients that the tests call with)`);
    installPackages(names, []);
  }
  const left = missing();
  if (left.length > 0)
    throw new Error(`The tests need ${left.join(' and ')} on the PATH: they are clients that the tests call with.`);
}
