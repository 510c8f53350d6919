// The file that a Redis appends to. A machine that loses power loses the end of it.

import { readFileSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { infoNumber } from '../support/redis-info.mjs';
import { until } from '../support/wait.ts';

/** A position in the file of a Redis. */
export type FileEnd = { readonly file: string; readonly bytes: number };

/**
 * Where the file of a Redis ends once it has written all it has acknowledged: during a slow fsync, `everysec` keeps back up to 2 s.
 *
 * @param info  asks this Redis for `INFO persistence`
 */
export async function writtenEnd(dir: string, info: () => Promise<string>): Promise<FileEnd> {
  await until(async () => infoNumber(await info(), 'aof_buffer_length') === 0);
  return fileEnd(dir);
}

/** Where the file of the Redis in this folder ends now. It appends to the last file that its manifest calls incremental. */
function fileEnd(dir: string): FileEnd {
  const folder = path.join(dir, 'appendonlydir');
  const manifest = readFileSync(path.join(folder, 'appendonly.aof.manifest'), 'utf8');
  const name = manifest
    .split('\n')
    .filter((line) => line.endsWith(' type i'))
    .at(-1)
    ?.split(' ')[1];
  if (name === undefined) throw new Error(`${folder} has no file to append to: ${manifest}`);
  const file = path.join(folder, name);
  return { file, bytes: statSync(file).size };
}

/** The beginning of a transaction, its end, and an event with the time in its id, as commands of the file. */
const MULTI = '*1\r\n$5\r\nMULTI\r\n';
const EXEC = '*1\r\n$4\r\nEXEC\r\n';
const EVENT = /\$4\r\nXADD\r\n\$\d+\r\n[^\r]+\r\n\$\d+\r\n(\d+)-/g;
const UUID = /[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g;
/** The clocks of one machine agree, but when one was set ahead. */
const AGREE_MS = 1_000;

/**
 * Cuts the file of a Redis that has ended, somewhere between an earlier end and its present one. Redis drops the command that is cut in
 * the middle. A file that was rewritten meanwhile stays as it is: it was complete on the disk when it replaced the other.
 *
 * Redis (7.0.15) leaves the beginning of a transaction that is cut, and runs it at its second start: before what it has acknowledged since
 * the first. An event in it whose id is from a clock that was ahead has the id of the first event since, which is then refused, and lost.
 * Of such a transaction nothing is left here, as after `redis-check-aof --fix`, which docs/operating.md asks for.
 *
 * @param part from 0, which is the earlier end, to 1
 * @returns the calls of which it has lost a write
 */
export function cutFile(dir: string, since: FileEnd, part: number): string[] {
  const now = fileEnd(dir);
  if (now.file !== since.file) return [];
  const end = since.bytes + Math.floor((now.bytes - since.bytes) * part);
  // One character for each byte. The earlier end is the end of a transaction.
  const written = readFileSync(now.file).toString('latin1', since.bytes);
  const left = written.slice(0, end - since.bytes);
  const begun = left.lastIndexOf(MULTI);
  const torn = begun > left.lastIndexOf(EXEC) ? left.slice(begun) : '';
  const isAhead = [...torn.matchAll(EVENT)].some(([, ms]) => Number(ms) > Date.now() + AGREE_MS);
  truncateSync(now.file, isAhead ? since.bytes + begun : end);
  // Redis drops a command that is cut, too.
  return callsIn(written.slice(torn === '' ? left.lastIndexOf('\n*') + 1 : begun));
}

/** The calls of which this Redis has written something since then. None if its file was rewritten meanwhile. */
export function callsWrittenSince(dir: string, since: FileEnd): string[] {
  return fileEnd(dir).file === since.file ? callsIn(readFileSync(since.file).toString('latin1', since.bytes)) : [];
}

/** Each write of a call names its usage id: its hold, its event, its claim. Ids of accounts do no harm among them. */
const callsIn = (commands: string): string[] => commands.match(UUID) ?? [];
