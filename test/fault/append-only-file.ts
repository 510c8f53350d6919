// The file that a Redis appends to. A machine that loses power loses the end of it.

import { readFileSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import { infoNumber } from '../support/redis-info.mjs';
import { until } from '../support/wait.ts';

/** A place in the file of a Redis. */
export type FileEnd = { readonly file: string; readonly bytes: number };

/**
 * Where the file of a Redis ends that has written all it has acknowledged: while an fsync is slow, `everysec` keeps up to 2 s back.
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

/**
 * Cuts the file of a Redis that has ended, somewhere between an earlier end and its present one. Redis drops the command that is cut in
 * the middle. A file that was written anew meanwhile is left as it is: it was complete on the disk when it took the other's place.
 *
 * @param part from 0, which is the earlier end, to 1
 */
export function cutFile(dir: string, since: FileEnd, part: number): void {
  const now = fileEnd(dir);
  if (now.file === since.file) truncateSync(now.file, since.bytes + Math.floor((now.bytes - since.bytes) * part));
}
