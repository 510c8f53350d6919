import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Child } from '../../src/supervisor/child.ts';
import { isAlive } from '../integration/worker-stack.ts';
import { until } from '../support/wait.ts';
import { TestSlot } from './support.ts';

let test: TestSlot;
beforeEach(() => {
  test = new TestSlot('7');
});
afterEach(async () => {
  await test.slot.stop();
  expect(test.pids.filter(isAlive)).toEqual([]);
});

describe('a slot', () => {
  it('is filled again when its process is killed', async () => {
    await test.slot.start();
    process.kill(test.pids[0] as number, 'SIGKILL');
    await until(() => test.pids.length === 2 && test.slot.isFilled);
    expect(test.slot.restarts).toBe(1);
    expect(test.log.lines.join('\n')).toContain('"end":"SIGKILL"');
  });

  it('tries again after a pause when its process cannot be started, and logs that', async () => {
    await test.slot.start();
    test.behaviour = 'fails';
    process.kill(test.pids[0] as number, 'SIGKILL');
    await until(() => test.log.lines.filter((line) => line.includes('could not be started again')).length === 1);
    expect(test.log.lines.at(-1)).toContain('it ended before it was ready: exit code 3');
    test.behaviour = 'good';
    await until(() => test.slot.isFilled);
    expect(test.slot.restarts).toBe(2);
  });

  it('does not retry its first start if that start fails', async () => {
    test.behaviour = 'fails';
    await expect(test.slot.start()).rejects.toThrow('it ended before it was ready: exit code 3');
    expect([test.slot.isFilled, test.pids.length]).toEqual([false, 1]);
  });

  it('kills a process that is not ready in time', async () => {
    const slow = new Child('test/supervisor/fixtures/child.mjs', ['slow', '/dev/null']);
    await expect(slow.untilReady(300)).rejects.toThrow('it ended before it was ready: SIGKILL');
  });

  it('waits until a new process is ready before it tells the old one to stop', async () => {
    await test.slot.start();
    await test.slot.replace();
    const [old, next] = test.pids;
    expect(test.notes).toEqual([
      [old, 'started'],
      [next, 'started'],
      [old, 'replaced'],
    ]);
    expect([isAlive(old as number), isAlive(next as number), test.slot.restarts]).toEqual([false, true, 0]);
  });

  it('keeps its process when the replacement fails', async () => {
    await test.slot.start();
    test.behaviour = 'fails';
    await expect(test.slot.replace()).rejects.toThrow('exit code 3');
    expect([test.slot.isFilled, isAlive(test.pids[0] as number)]).toEqual([true, true]);
  });

  it('is filled again when its process dies while its replacement fails', async () => {
    await test.slot.start();
    test.behaviour = 'slow';
    const replacing = test.slot.replace();
    await until(() => test.pids.length === 2);
    const [old, slow] = test.pids;
    process.kill(old as number, 'SIGKILL');
    await until(() => !test.slot.isFilled);
    test.behaviour = 'good';
    process.kill(slow as number, 'SIGKILL');
    await expect(replacing).rejects.toThrow('SIGKILL');
    await until(() => test.slot.isFilled);
    expect(test.pids).toHaveLength(3);
  });

  it('kills a process that does not end in time', async () => {
    test = new TestSlot('7', 200);
    test.behaviour = 'deaf';
    await test.slot.start();
    await test.slot.stop();
    expect(test.what).toEqual(['started', 'stop']);
    expect(test.log.lines.at(-1)).toContain('was killed');
  });

  it('leaves no process behind when it is stopped in the middle of a start', async () => {
    test.behaviour = 'slow';
    const starting = test.slot.start();
    const failed = expect(starting).rejects.toThrow('exit code 0');
    await until(() => test.pids.length === 1);
    await test.slot.stop();
    await failed;
    await expect(test.slot.start()).rejects.toThrow('the slot is stopping');
  });

  it('starts no process when it is stopped during a pause', async () => {
    test.behaviour = 'brief';
    await test.slot.start();
    test.behaviour = 'fails';
    await until(() => test.pids.length === 2 && test.log.lines.some((line) => line.includes('started again')));
    await test.slot.stop();
    expect(test.pids).toHaveLength(2);
  });
});
