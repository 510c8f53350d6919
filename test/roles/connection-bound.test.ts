import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { maxOpenFiles } from '../../src/platform/open-files.ts';
import { connectionBound } from '../../src/roles/connection-bound.ts';

function boundOf(wanted: number, maxFiles: number): [bound: number, warnings: number] {
  const warnings: string[] = [];
  const bound = connectionBound(wanted, maxFiles, { warn: (_fields, message) => void warnings.push(message) });
  return [bound, warnings.length];
}

it('connections to services, plus as many callers, never need more files than the process may open', () => {
  expect(boundOf(8_192, Number.POSITIVE_INFINITY)).toEqual([8_192, 0]);
  expect(boundOf(8_192, 16_640)).toEqual([8_192, 0]);
  expect(boundOf(8_192, 16_639)).toEqual([8_191, 1]);
  expect(boundOf(8_192, 1_024)).toEqual([384, 1]);
  expect(boundOf(8_192, 100)).toEqual([1, 1]);
});

it('the open-file limit that is read is that of this process', () => {
  const line = readFileSync('/proc/self/limits', 'utf8')
    .split('\n')
    .find((text) => text.startsWith('Max open files'));
  expect(maxOpenFiles()).toBeGreaterThan(0);
  expect(line).toContain(Number.isFinite(maxOpenFiles()) ? ` ${maxOpenFiles()} ` : 'unlimited');
  expect(maxOpenFiles('/nowhere')).toBe(Number.POSITIVE_INFINITY);
});
