// @ts-check
// Makes a clone runnable: installs the npm packages of the lockfile, and builds dist/ from src/. When nothing has changed, both
// checks take milliseconds. This file imports only Node's own modules, because it runs before any package is installed.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson, writeJson } from './files.mjs';

export const projectDir = fileURLToPath(new URL('../../', import.meta.url));
const minimumNode = [20, 19];
const glibcOfCurrentAddon = [2, 38];
const firstNodeWithoutLegacyAddon = [24, 0];

/**
 * @typedef {object} LockedPackage
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [optional]
 */

/** Throws when this Node cannot run the project on this system. */
export function checkNodeVersion() {
  const report = /** @type {{ header: { glibcVersionRuntime?: string } }} */ (process.report.getReport());
  const problem = nodeProblem(process.versions.node, report.header.glibcVersionRuntime);
  if (problem !== null) throw new Error(problem);
}

/**
 * Why a version of Node cannot run the project, or null. uWebSockets.js has two releases (src/http/uws.ts): one needs the glibc
 * below, and the other has no binary for the Node below.
 * @param {string} node
 * @param {string | undefined} glibc  undefined where there is none: the addon says at its start what it lacks there
 */
export function nodeProblem(node, glibc) {
  if (isBelow(node, minimumNode)) return `Tollgate needs Node ${minimumNode.join('.')} or newer; this is ${node}`;
  if (glibc === undefined || !isBelow(glibc, glibcOfCurrentAddon) || isBelow(node, firstNodeWithoutLegacyAddon))
    return null;
  return (
    `Node ${node} needs glibc ${glibcOfCurrentAddon.join('.')} for uWebSockets.js, and this system has ${glibc}. ` +
    'Use Node 22 or 20 here, or a newer system (Debian 13, Ubuntu 24.04).'
  );
}

/** @param {string} version @param {readonly number[]} than */
function isBelow(version, [thanMajor = 0, thanMinor = 0]) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major < thanMajor || (major === thanMajor && minor < thanMinor);
}

/** @param {(line: string) => void} say */
export function ensureDependencies(say) {
  if (
    isInstalled(path.join(projectDir, 'package-lock.json'), path.join(projectDir, 'node_modules', '.package-lock.json'))
  ) {
    return;
  }
  say('Installing packages (npm ci)');
  // Without --include=dev, a NODE_ENV=production in the environment would leave out the compiler and the local Postgres.
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
}

/**
 * Whether the installed packages are those of the lockfile. Compares the lockfile with the list that npm writes after a complete
 * installation. The times of the two files prove nothing, because git sets them at a checkout.
 * @param {string} lockFile
 * @param {string} installedFile
 */
export function isInstalled(lockFile, installedFile) {
  const wanted = packagesOf(lockFile);
  const installed = packagesOf(installedFile);
  if (wanted === null || installed === null) return false;
  const names = Object.keys(wanted).filter((name) => name !== '');
  const allThere = names.every((name) => {
    const there = installed[name];
    // Binaries for other platforms are optional, and npm does not install them.
    return there === undefined ? wanted[name]?.optional === true : isSame(there, wanted[name]);
  });
  return allThere && Object.keys(installed).every((name) => name in wanted);
}

/** @param {LockedPackage} a @param {LockedPackage | undefined} b */
const isSame = (a, b) => a.version === b?.version && a.integrity === b?.integrity;

/** @param {string} file @returns {Record<string, LockedPackage> | null} */
const packagesOf = (file) => readJson(file)?.packages ?? null;

const buildInputs = [
  'src',
  'migrations',
  'tsconfig.json',
  'tsconfig.build.json',
  'package-lock.json',
  'scripts/copy-assets.mjs',
  'scripts/build-web.mjs',
  'scripts/bundle.mjs',
  'web',
];

/**
 * Builds dist/ if one of its sources was added, removed or changed since this function last built it.
 * @param {(line: string) => void} say
 */
export function ensureBuilt(say) {
  const dist = path.join(projectDir, 'dist');
  const stampFile = path.join(dist, '.build.json');
  const fingerprint = fingerprintOf(buildInputs.map((input) => path.join(projectDir, input)));
  if (existsSync(path.join(dist, 'main.js')) && readJson(stampFile)?.fingerprint === fingerprint) return;
  say('Building (npm run build)');
  // The compiler does not remove files whose source is gone.
  rmSync(dist, { recursive: true, force: true });
  run('npm', ['run', '--silent', 'build']);
  writeJson(stampFile, { fingerprint });
}

/** A hash over the names, sizes and times of all files below these paths. @param {string[]} inputs */
export function fingerprintOf(inputs) {
  const hash = createHash('sha256');
  for (const input of inputs) for (const line of describe(input)) hash.update(`${line}\n`);
  return hash.digest('hex');
}

/** @param {string} file @returns {string[]} */
function describe(file) {
  const stat = statSync(file, { throwIfNoEntry: false });
  if (stat === undefined) return [`${file} is missing`];
  if (!stat.isDirectory()) return [`${file} ${stat.size} ${stat.mtimeMs}`];
  return readdirSync(file)
    .sort()
    .flatMap((name) => describe(path.join(file, name)));
}

/** Runs a command without showing its output. If it fails, the error has the output. @param {string} command @param {string[]} args */
function run(command, args) {
  const result = spawnSync(command, args, { cwd: projectDir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (result.status === 0) return;
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`.trim();
  throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
}
