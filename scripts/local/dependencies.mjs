// @ts-check
// Brings a clone to where it can run: the npm packages of the lockfile, and dist/ from src/. Both are skipped in
// milliseconds when nothing changed. Only Node's own modules: this runs before anything is installed.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { readJson, writeJson } from './files.mjs';

export const projectDir = fileURLToPath(new URL('../../', import.meta.url));
const minimumNode = [20, 19];

/**
 * @typedef {object} LockedPackage
 * @property {string} [version]
 * @property {string} [integrity]
 * @property {boolean} [optional]
 */

/** Throws when this Node is too old to run the project. */
export function checkNodeVersion() {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  const [wantedMajor = 0, wantedMinor = 0] = minimumNode;
  if (major > wantedMajor || (major === wantedMajor && minor >= wantedMinor)) return;
  throw new Error(`Tollgate needs Node ${minimumNode.join('.')} or newer; this is ${process.versions.node}`);
}

/** @param {(line: string) => void} say */
export function ensureDependencies(say) {
  if (
    isInstalled(path.join(projectDir, 'package-lock.json'), path.join(projectDir, 'node_modules', '.package-lock.json'))
  ) {
    return;
  }
  say('Installing packages (npm ci)');
  // --include=dev: a NODE_ENV=production in the environment would leave out the compiler and the local Postgres.
  run('npm', ['ci', '--include=dev', '--no-audit', '--no-fund', '--loglevel=error']);
}

/**
 * Compares what the lockfile wants with what npm wrote down after its last complete installation. Times of files prove
 * nothing: git sets them when it checks out.
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
    // Binaries of other platforms are optional and stay away.
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
];

/**
 * Builds dist/ when one of its sources was added, removed or changed since the last build by this function.
 * @param {(line: string) => void} say
 */
export function ensureBuilt(say) {
  const dist = path.join(projectDir, 'dist');
  const stampFile = path.join(dist, '.build.json');
  const fingerprint = fingerprintOf(buildInputs.map((input) => path.join(projectDir, input)));
  if (existsSync(path.join(dist, 'main.js')) && readJson(stampFile)?.fingerprint === fingerprint) return;
  say('Building (npm run build)');
  // The compiler never removes what an older source left behind.
  rmSync(dist, { recursive: true, force: true });
  run('npm', ['run', '--silent', 'build']);
  writeJson(stampFile, { fingerprint });
}

/** Changes with every name, size and time below these paths. @param {string[]} inputs */
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

/** Quiet; its output becomes the error when it fails. @param {string} command @param {string[]} args */
function run(command, args) {
  const result = spawnSync(command, args, { cwd: projectDir, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  if (result.status === 0) return;
  const output = `${result.stdout ?? ''}${result.stderr ?? ''}${result.error?.message ?? ''}`.trim();
  throw new Error(`${command} ${args.join(' ')} failed:\n${output}`);
}
