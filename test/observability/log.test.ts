import { spawnSync } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { describeError } from '../../src/observability/log.ts';
import { buildSources } from '../support/build.ts';

it('a log that nothing takes any more ends no process', () => {
  const log = pathToFileURL(path.join(buildSources(), 'observability', 'log.js'));
  const program = `
    const { createLog } = await import(${JSON.stringify(log.href)});
    const log = createLog('info', {});
    for (let i = 0; i < 3; i++) log.info({}, 'nobody hears this');
    process.exitCode = 7;`;
  // As a full disk, and as a terminal that is gone, where writing fails with EIO.
  const full = openSync('/dev/full', 'w');
  const args = ['--input-type=module', '--eval', program];
  const { status, stderr } = spawnSync(process.execPath, args, { stdio: ['ignore', full, 'pipe'], encoding: 'utf8' });
  closeSync(full);
  expect([status, stderr]).toEqual([7, '']);
});

describe('an error in the log', () => {
  it('has its message and cause, and nothing that a library hung on it', () => {
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

  it('need not be an error', () => {
    expect(describeError('text')).toEqual({ message: 'text' });
  });
});
