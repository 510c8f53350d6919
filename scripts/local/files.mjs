// @ts-check
// Reads and writes the small state files of the local stack. They are JSON, private to their owner, and replaced as a whole.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes a temporary file beside `file` and renames it to `file`, so a reader sees the old content or the new, never half of it.
 * The mode is 0600, because some of these files contain secrets.
 * @param {string} file
 * @param {unknown} value
 */
export function writeJson(file, value) {
  mkdirSync(path.dirname(file), { recursive: true });
  const temporary = `${file}.${process.pid}.tmp`;
  writeFileSync(temporary, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(temporary, file);
}

/**
 * @param {string} file
 * @returns {any} the value, or null if there is no such file. Throws if the file is not JSON
 */
export function readJson(file) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    if (errorCode(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new Error(`${file} is not valid JSON. Remove it and start again`);
  }
}

/** The `code` of a system error, or undefined. @param {unknown} error @returns {string | undefined} */
export function errorCode(error) {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
