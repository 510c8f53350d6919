import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { exportDay } from '../../../src/ledger/retention/export-file.ts';
import { anyText } from '../../support/any-text.ts';
import { newExportDir } from './support.ts';

const DAY = '2012-01-01';
const idOf = (i: number): string => `00000000-0000-7000-8000-${String(i).padStart(12, '0')}`;
const lineOf = (i: number, amount: number, fee: number, rest: object = {}): string =>
  JSON.stringify({ day: DAY, usage_id: idOf(i), amount, fee, ...rest });

async function* pagesOf(lines: readonly string[], size = 3) {
  for (let at = 0; at < lines.length; at += size) yield lines.slice(at, at + size);
}

const write = (dir: string, lines: readonly string[], expected: { calls: number; amount: number; fees: number }) =>
  exportDay(dir, { installation: 'i', day: DAY, expected }, pagesOf(lines), new AbortController().signal);

it('a reader gets back the calls and sums that were written, whatever text they contain', async () => {
  const anyCall = fc.record({
    amount: fc.nat(1_000_000_000),
    fee: fc.nat(1_000),
    path: anyText({ maxLength: 40 }),
  });
  const property = fc.asyncProperty(fc.array(anyCall, { maxLength: 50 }), async (calls) => {
    const dir = newExportDir();
    const lines = calls.map(({ amount, fee, path: text }, i) => lineOf(i, amount, fee, { path: text }));
    const sum = (of: (call: (typeof calls)[number]) => number) => calls.reduce((total, call) => total + of(call), 0);
    const expected = { calls: calls.length, amount: sum((call) => call.amount), fees: sum((call) => call.fee) };
    expect(await write(dir, lines, expected)).toMatchObject(expected);
    expect(readdirSync(dir)).toHaveLength(2);
  });
  await fc.assert(property, { numRuns: 20 });
});

it.each([
  ['a call is missing', [lineOf(1, 10, 1)], { calls: 2, amount: 10, fees: 1 }],
  ['an amount differs', [lineOf(1, 11, 1)], { calls: 1, amount: 10, fees: 1 }],
  ['a fee differs', [lineOf(1, 10, 2)], { calls: 1, amount: 10, fees: 1 }],
  ['a call is there twice', [lineOf(1, 5, 0), lineOf(1, 5, 1)], { calls: 2, amount: 10, fees: 1 }],
  ['a call is of another day', [lineOf(1, 10, 1, { day: '2012-01-02' })], { calls: 1, amount: 10, fees: 1 }],
])('an export in which %s fails, and has no manifest', async (_, lines, expected) => {
  const dir = newExportDir();
  await expect(write(dir, lines, expected)).rejects.toThrow(`the export of ${DAY}`);
  expect(readdirSync(dir).filter((name) => name.endsWith('.json'))).toEqual([]);
});

it('a temporary file that a killed process left is removed, and the file is written again', async () => {
  const dir = newExportDir();
  writeFileSync(path.join(dir, `calls-${DAY}.ndjson.gz.1.tmp`), 'cut off');
  writeFileSync(path.join(dir, `calls-${DAY}.ndjson.gz`), gzipSync('old'));
  writeFileSync(path.join(dir, 'calls-2012-01-02.ndjson.gz.1.tmp'), 'of another day');
  const manifest = await write(dir, [lineOf(1, 10, 1)], { calls: 1, amount: 10, fees: 1 });
  expect(readdirSync(dir).sort()).toEqual([
    'calls-2012-01-01.json',
    'calls-2012-01-01.ndjson.gz',
    'calls-2012-01-02.ndjson.gz.1.tmp',
  ]);
  expect(JSON.parse(readFileSync(path.join(dir, `calls-${DAY}.json`), 'utf8'))).toEqual(manifest);
});
