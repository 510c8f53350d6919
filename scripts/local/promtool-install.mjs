// @ts-check
// Finds promtool, which checks and tests the alert rules of deploy/prometheus. If there is none, installs Debian's package prometheus
// where that needs no question and no password.

import { canInstall, installPackages } from './apt.mjs';
import { findPrograms, usualFolders } from './programs.mjs';

/** The package on Debian and Ubuntu. Its service, which would take port 9090, is not started. */
const debianPackage = 'prometheus';

const advice = [
  'The tests of the alert rules need promtool, which comes with Prometheus. Any of these installs it:',
  '  Debian, Ubuntu   sudo apt-get install --no-install-recommends prometheus',
  '  Fedora           sudo dnf install golang-github-prometheus',
  '  macOS            brew install prometheus',
].join('\n');

/** @returns {string} full path. If there is no such program, throws an error that says how to get one */
export function findPromtool(folders = usualFolders()) {
  const [found] = findPrograms(['promtool'], folders);
  if (found === undefined) throw new Error(advice);
  return found;
}

/**
 * Makes sure that there is a promtool. If there is none, installs the package on Debian and Ubuntu as root; elsewhere throws an
 * error that says how to get one.
 * @param {(line: string) => void} say
 */
export function ensurePromtool(say) {
  if (findPrograms(['promtool'], usualFolders()).length > 0) return;
  if (!canInstall()) throw new Error(advice);
  say('Installing prometheus with apt-get (no promtool on this machine)');
  try {
    installPackages([debianPackage], ['prometheus']);
  } catch (error) {
    throw new Error(`${error instanceof Error ? error.message : error}\n\n${advice}`);
  }
  findPromtool();
}
