import { tmpdir } from 'node:os';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { folderOfTests } from '../../scripts/local/scratch.mjs';

const ROOM = 8 * 2 ** 30;
const mounts = (options: string): string => `proc /proc proc rw 0 0\ntmpfs /memory tmpfs ${options} 0 0\n`;

beforeEach(() => void vi.stubEnv('TMPDIR', undefined));
afterEach(() => void vi.unstubAllEnvs());

it('a test run keeps its files in memory', () => {
  expect(folderOfTests({ folder: '/memory', mounts: mounts('rw,nosuid'), freeBytes: ROOM })).toBe('/memory');
});

it.each([
  ['there is too little room', mounts('rw'), ROOM / 2],
  ['no program can be run there', mounts('rw,noexec'), ROOM],
  ['there is no such folder', '', ROOM],
])('a test run keeps its files on disk when %s', (_, its, freeBytes) => {
  expect(folderOfTests({ folder: '/memory', mounts: its, freeBytes })).toBe(tmpdir());
});

it('a test run keeps its files where TMPDIR points', () => {
  vi.stubEnv('TMPDIR', '/elsewhere');
  expect(folderOfTests({ folder: '/memory', mounts: mounts('rw'), freeBytes: ROOM })).toBe('/elsewhere');
});
