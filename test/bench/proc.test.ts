import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { cpuSeconds, cpuSecondsOf, machineCpuSeconds, rssBytesOf } from '../../bench/measure/proc.mjs';

/** Runs a script in a child, waits until the script prints something, measures the child while it still runs, and kills it. */
async function measureChild<T>(code: string, measure: (pid: number) => T): Promise<T> {
  const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    return measure(child.pid as number);
  } finally {
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
}

const linuxOnly = describe.skipIf(process.platform !== 'linux');

/** Code that uses this much CPU time. It asks for it seldom, because each question is a system call. */
const burn = (seconds: number): string =>
  `const t = process.cpuUsage(); while (process.cpuUsage(t).user < ${seconds * 1e6}) for (let i = 0; i < 1e6; i++);`;

// The scripts below use a known amount of CPU time. The tests leave room for the clock ticks of 10 ms and the start of Node.
linuxOnly('CPU time of a process', () => {
  it('includes threads beside the event loop: those of libuv and worker threads', async () => {
    const code = `
      const { pbkdf2 } = require('node:crypto');
      const { Worker } = require('node:worker_threads');
      const inPool = new Promise((done) => pbkdf2('a', 'b', 400_000, 64, 'sha512', done));
      const worker = new Worker("require('crypto').pbkdf2Sync('a', 'b', 400_000, 64, 'sha512')", { eval: true });
      const inWorker = new Promise((done) => worker.once('exit', done));
      Promise.all([inPool, inWorker]).then(() => {
        const { user, system } = process.cpuUsage();
        console.log((user + system) / 1e6);
        setInterval(() => {}, 1000);
      });`;
    // process.cpuUsage() calls getrusage(2), in which the kernel counts the same time of the whole process in another way.
    const child = spawn(process.execPath, ['-e', code], { stdio: ['ignore', 'pipe', 'inherit'] });
    try {
      const [line] = (await once(child.stdout, 'data')) as [Buffer];
      const said = Number(line.toString());
      const read = cpuSeconds(child.pid as number);
      expect(said).toBeGreaterThan(0.2);
      expect(Math.abs(read - said)).toBeLessThan(0.1);
    } finally {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  });

  it('includes running and ended children when the whole process tree is measured', async () => {
    const code = `
      const { spawn, spawnSync } = require('node:child_process');
      spawnSync(process.execPath, ['-e', \`${burn(0.2)}\`]);
      const child = spawn(process.execPath, ['-e', \`${burn(0.2)} console.log('x'); process.stdin.resume().once('close', () => process.exit())\`]);
      child.stdout.once('data', () => { console.log('done'); setInterval(() => {}, 1000); });`;
    const { alone, tree } = await measureChild(code, (pid) => ({
      alone: cpuSecondsOf([{ pid, extent: 'process' }]),
      tree: cpuSecondsOf([{ pid, extent: 'tree' }]),
    }));
    expect(tree - alone).toBeGreaterThan(0.35);
  });

  it('is 0 for a process that is gone, and so is its memory', () => {
    const gone = 2 ** 22 + 1;
    expect(cpuSeconds(gone)).toBe(0);
    expect(rssBytesOf([{ pid: gone, extent: 'process' }])).toBe(0);
  });

  it('never exceeds what the whole machine used in that time', async () => {
    const before = machineCpuSeconds().busy;
    const own = await measureChild(`${burn(0.3)} console.log('x'); setInterval(() => {}, 9e5)`, cpuSeconds);
    expect(own).toBeGreaterThan(0.25);
    expect(machineCpuSeconds().busy - before).toBeGreaterThan(own - 0.1);
  });
});

linuxOnly('memory of a process', () => {
  it('grows by the amount of memory that the process writes to', async () => {
    const rss = await measureChild(
      "global.b = Buffer.alloc(64 << 20, 1); console.log('x'); setInterval(() => {}, 9e5)",
      (pid) => rssBytesOf([{ pid, extent: 'process' }]),
    );
    expect(rss).toBeGreaterThan(64 * 2 ** 20);
    expect(rss).toBeLessThan(256 * 2 ** 20);
  });
});
