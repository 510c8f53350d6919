// @ts-check
// Looks for programs of the system.

import { accessSync, constants } from 'node:fs';
import path from 'node:path';

/** The folders of the PATH, and those where programs usually are. */
export const usualFolders = () =>
  [...(process.env.PATH ?? '').split(path.delimiter), '/usr/local/bin', '/usr/bin', '/opt/homebrew/bin'].filter(
    Boolean,
  );

/**
 * @param {readonly string[]} names
 * @param {readonly string[]} folders
 * @returns {string[]} full paths of the programs that exist: all folders for the first name, then for the second
 */
export function findPrograms(names, folders) {
  return names.flatMap((name) => folders.map((folder) => path.join(folder, name))).filter(isExecutable);
}

/** @param {string} file */
export function isExecutable(file) {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
