import { createHash, randomUUID } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { access, constants, open, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip, createGzip } from 'node:zlib';
import type { DaySums } from './close-day.ts';

/**
 * The export of a day: `calls-YYYY-MM-DD.ndjson.gz`, one JSON object per call with all columns, in the order of the ids, and the
 * manifest `calls-YYYY-MM-DD.json`. Each is written under a temporary name, flushed to disk and then renamed, so a file with its
 * final name is complete. The manifest comes last.
 *
 * Tested by test/ledger/retention/export-file.test.ts.
 */

/** What is in an export. */
export type Manifest = DaySums & {
  readonly format: 1;
  /** Id of the installation to which the calls belong. */
  readonly installation: string;
  /** YYYY-MM-DD. */
  readonly day: string;
  readonly file: string;
  /** Digest of the stored, compressed file. */
  readonly bytes: number;
  readonly sha256: string;
};

const fileName = (day: string): string => `calls-${day}.ndjson.gz`;
const manifestName = (day: string): string => `calls-${day}.json`;

/** @throws when `dir` is not a folder in which this process may create files */
export async function checkExportDir(dir: string): Promise<void> {
  await readdir(dir);
  await access(dir, constants.W_OK | constants.X_OK);
}

/**
 * Writes the export of a day, reads it back, and compares it with `expected`: what the database says of the day.
 *
 * @param lines pages of JSON texts, one for each call
 * @throws when the file that was read back has other calls or sums. It then has no manifest
 */
export async function exportDay(
  dir: string,
  day: { readonly installation: string; readonly day: string; readonly expected: DaySums },
  lines: AsyncIterable<readonly string[]>,
  signal: AbortSignal,
): Promise<Manifest> {
  await removeTemporary(dir, day.day);
  const file = path.join(dir, fileName(day.day));
  await rm(path.join(dir, manifestName(day.day)), { force: true });
  await writeWhole(file, (temporary) => writeLines(temporary, lines, signal));
  const { bytes, sha256, ...sums } = await readBack(file, day.day, signal);
  const { calls, amount, fees } = day.expected;
  if (sums.calls !== calls || sums.amount !== amount || sums.fees !== fees) {
    const text = ({ calls, amount, fees }: DaySums) => `${calls} calls of ${amount} with fees of ${fees}`;
    throw new Error(`the export of ${day.day} has ${text(sums)}, but the database has ${text(day.expected)}`);
  }
  const manifest = {
    format: 1 as const,
    installation: day.installation,
    day: day.day,
    file: fileName(day.day),
    calls,
    amount,
    fees,
    bytes,
    sha256,
  };
  await writeWhole(path.join(dir, manifestName(day.day)), (temporary) =>
    writeFile(temporary, `${JSON.stringify(manifest, null, 2)}\n`, { flag: 'wx' }),
  );
  return manifest;
}

/** Deletes what killed processes have left. A process that only lost its lock then fails when it renames its file. */
async function removeTemporary(dir: string, day: string): Promise<void> {
  const names = (await readdir(dir)).filter((name) => name.startsWith(`calls-${day}.`) && name.endsWith('.tmp'));
  for (const name of names) await rm(path.join(dir, name), { force: true });
}

async function writeWhole(file: string, write: (temporary: string) => Promise<void>): Promise<void> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  try {
    await write(temporary);
    await sync(temporary, 'r+');
    await rename(temporary, file);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  // The name is on the disk only after the folder is flushed.
  await sync(path.dirname(file), 'r');
}

async function sync(name: string, flags: string): Promise<void> {
  const handle = await open(name, flags);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeLines(file: string, pages: AsyncIterable<readonly string[]>, signal: AbortSignal): Promise<void> {
  async function* texts() {
    for await (const page of pages) yield `${page.join('\n')}\n`;
  }
  await pipeline(Readable.from(texts()), createGzip(), createWriteStream(file, { flags: 'wx', mode: 0o640 }), {
    signal,
  });
}

type Found = DaySums & { readonly bytes: number; readonly sha256: string };
type Line = { readonly day: string; readonly usage_id: string; readonly amount: number; readonly fee: number };

/** @throws when the file is incomplete, or has a line that is not a call of the day, or a call twice */
async function readBack(file: string, day: string, signal: AbortSignal): Promise<Found> {
  const hash = createHash('sha256');
  let bytes = 0;
  let [calls, amount, fees] = [0, 0, 0];
  let last = '';
  const addLine = (text: string): void => {
    const call = JSON.parse(text) as Line;
    if (call.day !== day || call.usage_id <= last) throw new Error(`the export of ${day} has a wrong line: ${text}`);
    last = call.usage_id;
    calls += 1;
    amount += call.amount;
    fees += call.fee;
  };
  async function* hashed(chunks: AsyncIterable<Buffer>) {
    for await (const chunk of chunks) {
      hash.update(chunk);
      bytes += chunk.length;
      yield chunk;
    }
  }
  async function add(chunks: AsyncIterable<Buffer>): Promise<void> {
    const decoder = new StringDecoder('utf8');
    let rest = '';
    for await (const chunk of chunks) {
      const parts = (rest + decoder.write(chunk)).split('\n');
      rest = parts.pop() as string;
      for (const part of parts) addLine(part);
    }
    if (rest + decoder.end() !== '') throw new Error(`the export of ${day} is cut off`);
  }
  await pipeline(createReadStream(file), hashed, createGunzip(), add, { signal });
  return { calls, amount, fees, bytes, sha256: hash.digest('hex') };
}
