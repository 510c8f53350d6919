import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { describeError } from '../../src/observability/log.ts';
import { buildSources } from '../support/build.ts';

/** Runs code with a `log` that writes to a full disk. The code handles the EIO of a closed terminal in the same way. */
function withFullDisk(code: string) {
  const log = pathToFileURL(path.join(buildSources(), 'observability', 'log.js'));
  const program = `
    const { createLog } = await import(${JSON.stringify(log.href)});
    const log = createLog('info', {});
    ${code}`;
  const full = openSync('/dev/full', 'w');
  const args = ['--input-type=module', '--eval', program];
  const { status, signal, stderr } = spawnSync(process.execPath, args, {
    stdio: ['ignore', full, 'pipe'],
    encoding: 'utf8',
    timeout: 10_000,
  });
  closeSync(full);
  return { status, signal, stderr };
}

describe('a log whose output accepts no more lines', () => {
  it('does not end the process', () => {
    const code = `for (let i = 0; i < 3; i++) log.info({}, 'nobody hears this'); process.exitCode = 7;`;
    expect(withFullDisk(code)).toEqual({ status: 7, signal: null, stderr: '' });
  });

  it('does not keep a process from ending after a fatal line', () => {
    const code = `log.fatal({}, 'nobody hears this'); process.exit(7);`;
    expect(withFullDisk(code)).toEqual({ status: 7, signal: null, stderr: '' });
  });

  it('keeps no lines in memory', () => {
    const [lines, length] = [10_000, 4_000];
    const { stderr } = withFullDisk(`
      const before = process.memoryUsage().rss;
      for (let i = 0; i < ${lines}; i++) log.info({ text: 'x'.repeat(${length}) }, 'nobody hears this');
      process.stderr.write(String(process.memoryUsage().rss - before));`);
    expect(Number(stderr)).toBeLessThan((lines * length) / 2);
  });
});

describe('a log whose reader is slow, on a pipe that another process made non-blocking', () => {
  /** Runs code with a `log`. Standard output is a pipe that a parent process shares and has made non-blocking, as Node does with its own. */
  function behind(code: string) {
    const log = pathToFileURL(path.join(buildSources(), 'observability', 'log.js'));
    const program = `
      const { createLog } = await import(${JSON.stringify(log.href)});
      const log = createLog('info', {});
      await new Promise((resolve) => process.stdin.on('end', resolve).resume());
      ${code}`;
    const parent = `
      const { spawn } = await import('node:child_process');
      const args = ['--input-type=module', '--eval', ${JSON.stringify(program)}];
      const child = spawn(process.execPath, args, { stdio: ['pipe', 'inherit', 'inherit'] });
      process.stdout.write('{}\\n');
      child.stdin.end();
      child.on('exit', (code) => process.exit(code));`;
    const runner = spawn(process.execPath, ['--input-type=module', '--eval', parent], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    return { runner, exited: once(runner, 'exit') as Promise<[number]> };
  }

  it('loses no line and splits none', async () => {
    const { runner, exited } = behind(
      `for (let i = 1; i <= 2_000; i++) log.info({ i, text: 'x'.repeat(400) }, 'line'); process.exit(7);`,
    );
    let text = '';
    let pauses = 0;
    for await (const chunk of runner.stdout) {
      text += chunk;
      if (pauses++ < 5) await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const lines = text.trimEnd().split('\n');
    expect(lines.slice(1).map((line) => JSON.parse(line).i)).toEqual(Array.from({ length: 2_000 }, (_, i) => i + 1));
    expect(await exited).toEqual([7, null]);
  });

  it('does not keep the process from ending when nobody reads', async () => {
    const { exited } = behind(
      `for (let i = 0; i < 10_000; i++) log.info({ text: 'x'.repeat(400) }, 'line'); process.exit(7);`,
    );
    expect(await exited).toEqual([7, null]);
  });
});

describe('an error in the log', () => {
  it('has its message and cause, and no property that a library added', () => {
    const error = Object.assign(new Error('WRONGPASS'), {
      code: 'E1',
      command: { name: 'hello', args: ['3', 'AUTH', 'default', 'hunter2'] },
      cause: Object.assign(new Error('inner'), { secret: 'hunter2' }),
    });
    const text = JSON.stringify(describeError(error));
    expect(text).toContain('WRONGPASS');
    expect(text).toContain('inner');
    expect(text).toContain('"code":"E1"');
    expect(text).not.toContain('hunter2');
  });

  it('may be any value, not only an Error', () => {
    expect(describeError('text')).toEqual({ message: 'text' });
  });
});
