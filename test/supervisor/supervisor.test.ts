import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Metrics } from '../../src/observability/metrics.ts';
import { Supervisor } from '../../src/supervisor/supervisor.ts';
import { MemoryLog } from '../integration/marketplace.ts';
import { isAlive } from '../integration/worker-stack.ts';
import { until } from '../support/wait.ts';
import { TestSlot } from './support.ts';

let one: TestSlot;
let two: TestSlot;
let writer: TestSlot;
let log: MemoryLog;
let supervisor: Supervisor;

beforeEach(() => {
  [one, two, writer] = [new TestSlot('1'), new TestSlot('2'), new TestSlot('writer')];
  log = new MemoryLog();
  const slots = { workers: [one.slot, two.slot], writer: writer.slot };
  supervisor = new Supervisor({ ...slots, metrics: new Metrics(), log });
});
afterEach(async () => {
  await supervisor.stop();
  expect([one, two, writer].flatMap(({ pids }) => pids).filter(isAlive)).toEqual([]);
});

describe('a supervisor', () => {
  it('starts nothing more when its first process cannot be started', async () => {
    writer.behaviour = 'fails';
    await expect(supervisor.start()).rejects.toThrow('process writer could not be started');
    expect([one.pids, two.pids]).toEqual([[], []]);
  });

  it('stops the writer only after all workers have ended', async () => {
    two.behaviour = 'deaf';
    await supervisor.start();
    const stopping = supervisor.stop();
    await until(() => one.what.includes('stop') && two.what.includes('stop'));
    expect(writer.what).toEqual(['started']);
    process.kill(two.pids[0] as number, 'SIGKILL');
    await stopping;
    expect(writer.what).toEqual(['started', 'stop']);
  });

  it('replaces all processes once more when a second replacement is requested during the first', async () => {
    await supervisor.start();
    await Promise.all([supervisor.roll(), supervisor.roll(), supervisor.roll()]);
    for (const { pids } of [one, two, writer]) expect(pids).toHaveLength(3);
  });

  it('keeps the remaining processes when one cannot be replaced', async () => {
    await supervisor.start();
    one.behaviour = 'fails';
    await supervisor.roll();
    expect([writer.pids.length, one.pids.length, two.pids.length]).toEqual([2, 2, 1]);
    expect(log.lines.at(-1)).toContain('could not be replaced');
    expect([one, two, writer].every(({ slot }) => slot.isFilled)).toBe(true);
  });

  it('combines the metrics of all processes that answer on one page, with each name once', async () => {
    two.behaviour = 'silent';
    await supervisor.start();
    const page = await supervisor.renderMetrics();
    expect(page.match(/^# TYPE a_number gauge$/gm)).toHaveLength(1);
    expect(page.match(/^a_number\{.*$/gm)).toEqual(['a_number{worker="writer"} Nan', 'a_number{worker="1"} Nan']);
    expect(page).toContain('tollgate_worker_up{worker="2"} 1');
    expect(page).toMatch(/^process_start_time_seconds\{worker="supervisor"\} \d+/m);
  });
});
