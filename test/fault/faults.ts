// Carries out the faults of a plan, and undoes them.

import { childPids } from '../../scripts/local/identity.mjs';
import { expire, renew } from './leases.ts';
import type { Fault } from './plan.ts';
import type { Stack, Worker } from './stack.ts';

/** Undoes a fault. Resolves when the broken part works again as far as it can by itself. */
export type Heal = () => Promise<void>;

const NOTHING: Heal = async () => {};

export async function inflict(stack: Stack, fault: Fault): Promise<Heal> {
  switch (fault.kind) {
    case 'link': {
      const link = stack.link(fault.link);
      link.set(fault.mode);
      return async () => link.set({ kind: 'pass' });
    }
    case 'reset':
      stack.link(fault.link).reset();
      return NOTHING;
    case 'kill':
      return kill(stack, fault.who, fault.draw);
    case 'stop':
      return stop(stack, fault.who, fault.draw);
    case 'oversleep':
      return oversleep(stack, fault.draw);
  }
}

async function kill(stack: Stack, who: Extract<Fault, { kind: 'kill' }>['who'], draw: number): Promise<Heal> {
  if (who === 'worker') {
    const worker = chooseWorker(stack, draw);
    if (worker !== null) process.kill(worker.pid, 'SIGKILL');
    // The worker's supervisor starts another one.
    return NOTHING;
  }
  const target = stack[who];
  await target.kill();
  return () => ('ensure' in target ? target.ensure() : target.restart());
}

async function stop(stack: Stack, who: Extract<Fault, { kind: 'stop' }>['who'], draw: number): Promise<Heal> {
  if (who === 'worker') {
    const worker = chooseWorker(stack, draw);
    return worker === null ? NOTHING : suspend([worker.pid]);
  }
  if (who === 'redis') {
    stack.redis.pause();
    return async () => stack.redis.resume();
  }
  // Postgres' backends are in process groups of their own.
  if (who === 'postgres') return suspend([stack.postgres.pid, ...childPids(stack.postgres.pid)]);
  stack[who].signal('SIGSTOP');
  return async () => stack[who].signal('SIGCONT');
}

async function oversleep(stack: Stack, draw: number): Promise<Heal> {
  const worker = chooseWorker(stack, draw);
  if (worker === null) return NOTHING;
  const wake = suspend([worker.pid]);
  await expire(stack, worker.instance);
  return async () => {
    await renew(stack, worker.instance);
    await wake();
  };
}

function suspend(pids: readonly number[]): Heal {
  for (const pid of pids) signalIfThere(pid, 'SIGSTOP');
  return async () => {
    for (const pid of pids) signalIfThere(pid, 'SIGCONT');
  };
}

/** Sends a signal to a process that may have ended by itself. */
function signalIfThere(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
  }
}

function chooseWorker(stack: Stack, draw: number): Worker | null {
  const workers = stack.workers();
  return workers[Math.floor(draw * workers.length)] ?? null;
}
