// @ts-check
// Small state files of the local stack: JSON, private to their owner, replaced whole.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Writes to a neighbour and renames: a reader sees the old file or the new one, never a half. Mode 0600, since some of
 * these hold secrets.
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
 * @returns {any} the value, or null when there is no such file; throws when it is not JSON
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
    throw new Error(`${file} is not valid JSON; remove it and start again`);
  }
}

/** The `code` of a system error, or undefined. @param {unknown} error @returns {string | undefined} */
export function errorCode(error) {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}
