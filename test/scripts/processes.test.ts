import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readJson } from '../../scripts/local/files.mjs';
import {
  findRecorded,
  isRunning,
  killProcess,
  type OwnedProcess,
  pollUntil,
  spawnOwned,
  stopProcess,
  waitUntilReady,
} from '../../scripts/local/processes.mjs';
import { createScratch } from '../../scripts/local/scratch.mjs';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'tollgate-processes-'));
});
afterEach(() => rmSync(dir, { recursive: true, force: true }));

const script = (name: string, code: string) => {
  const logFile = path.join(dir, `${name}.log`);
  return spawnOwned({ runDir: dir, name, command: process.execPath, args: ['-e', code], logFile });
};

describe('process records', () => {
  it('find a process while it runs, and no longer after it has ended', async () => {
    const child = script('sleeper', 'setInterval(() => {}, 1000)');
    expect(findRecorded(dir, 'sleeper')).toEqual(child.record);
    expect(await stopProcess(child.record)).toBe('stopped');
    expect(findRecorded(dir, 'sleeper')).toBeNull();
  });

  it('do not match a later process with the same pid, and that process is never signalled', async () => {
    const stranger = script('stranger', 'setInterval(() => {}, 1000)');
    const stale = { ...stranger.record, identity: 'an earlier boot:1' };
    expect(isRunning(stale)).toBe(false);
    expect(await stopProcess(stale)).toBe('stopped');
    await killProcess(stale);
    expect(isRunning(stranger.record)).toBe(true);
    await killProcess(stranger.record);
  });

  it('allow a process that ignores the stop request to be killed after the grace time', async () => {
    const child = script(
      'stubborn',
      "process.on('SIGTERM', () => {}); console.log('ready'); setInterval(() => {}, 1000)",
    );
    const logFile = path.join(dir, 'stubborn.log');
    await waitUntilReady(child, () => readFileSync(logFile, 'utf8').includes('ready'), { timeoutMs: 10_000, logFile });
    expect(await stopProcess(child.record, { graceMs: 100 })).toBe('killed');
    expect((await child.exited).signal).toBe('SIGKILL');
  });

  it('a child that ends before it is ready causes an error with its last output', async () => {
    const child = script('broken', "console.error('no such luck'); process.exit(3)");
    const logFile = path.join(dir, 'broken.log');
    const waiting = waitUntilReady(child, () => false, { timeoutMs: 10_000, logFile });
    await expect(waiting).rejects.toThrow(/broken ended before it was ready \(exit code 3\)[\s\S]*no such luck/);
  });

  it('a child that never becomes ready causes an error after a bounded time', async () => {
    const child = script('slow', 'setInterval(() => {}, 1000)');
    const waiting = waitUntilReady(child, () => false, { timeoutMs: 100, logFile: path.join(dir, 'slow.log') });
    await expect(waiting).rejects.toThrow('slow was not ready within 0.1 s');
    await killProcess(child.record);
  });
});

describe('a scratch folder', () => {
  it('is removed when its maker is killed, and its processes are stopped', async () => {
    const maker = path.join(dir, 'maker.mjs');
    const local = pathToFileURL(path.resolve('scripts/local')).href;
    writeFileSync(
      maker,
      `import { spawnOwned } from '${local}/processes.mjs';
       import { createScratch } from '${local}/scratch.mjs';
       import { writeJson } from '${local}/files.mjs';
       const scratch = createScratch();
       const code = 'setInterval(() => {}, 1000)';
       const child = spawnOwned({ runDir: scratch.runDir, name: 'orphan', command: process.execPath, args: ['-e', code] });
       writeJson('${dir}/made.json', { scratch: scratch.dir, record: child.record });
       setInterval(() => {}, 1000);`,
    );
    const owner = spawn(process.execPath, [maker], { stdio: 'inherit' });
    const madeFile = path.join(dir, 'made.json');
    expect(await pollUntil(() => existsSync(madeFile), { timeoutMs: 10_000 })).toBe(true);
    const { scratch, record } = readJson(madeFile);
    expect(isRunning(record)).toBe(true);
    owner.kill('SIGKILL');
    expect(await pollUntil(() => !existsSync(scratch), { timeoutMs: 10_000 })).toBe(true);
    expect(isRunning(record)).toBe(false);
  });

  it('stops even a process that is started while the folder is being released, and then assertInUse throws', async () => {
    const scratch = createScratch();
    const start = (name: string, code: string): OwnedProcess =>
      spawnOwned({ runDir: scratch.runDir, name, command: process.execPath, args: ['-e', code] });
    const file = (name: string): string => path.join(dir, name);
    const slow = start(
      'slow',
      `const fs = require('node:fs');
       process.on('SIGTERM', () => fs.writeFileSync('${file('asked')}', ''));
       setInterval(() => fs.existsSync('${file('go')}') && process.exit(), 20);
       fs.writeFileSync('${file('ready')}', '');`,
    );
    const has = (name: string): Promise<boolean> => pollUntil(() => existsSync(file(name)), { timeoutMs: 10_000 });
    expect(await has('ready')).toBe(true);
    expect(() => scratch.assertInUse()).not.toThrow();
    const released = scratch.release();
    expect(() => scratch.assertInUse()).toThrow('being stopped');
    expect(await has('asked')).toBe(true);
    // The reaper waits for the first process now. It has not seen this one yet.
    const late = start('late', 'setInterval(() => {}, 1000)');
    writeFileSync(file('go'), '');
    await released;
    expect([slow, late].filter(({ record }) => isRunning(record))).toEqual([]);
    expect(existsSync(scratch.dir)).toBe(false);
  });
});
