import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Child } from '../../src/supervisor/child.ts';
import { Slot } from '../../src/supervisor/slot.ts';
import { MemoryLog } from '../integration/marketplace.ts';
import { scratchDir } from '../support/stores.ts';

type Behaviour = 'good' | 'fails' | 'slow' | 'brief' | 'deaf' | 'silent';

/** A slot whose processes behave as the test says, and record what happens to them. */
export class TestSlot {
  /** How the next process will behave, see fixtures/child.mjs. */
  behaviour: Behaviour = 'good';
  readonly slot: Slot;
  readonly log = new MemoryLog();
  readonly #file = path.join(scratchDir(), `children-${randomUUID()}`);

  constructor(name: string, stopTimeoutMs = 5_000) {
    const entry = path.resolve('test/supervisor/fixtures/child.mjs');
    const fork = (): Child => new Child(entry, [this.behaviour, this.#file]);
    this.slot = new Slot({ name, fork, stopTimeoutMs, log: this.log });
  }

  /** What the processes recorded, in order. */
  get notes(): [pid: number, what: string][] {
    if (!existsSync(this.#file)) return [];
    const lines = readFileSync(this.#file, 'utf8').trimEnd().split('\n');
    return lines.map((line) => [Number.parseInt(line, 10), line.slice(line.indexOf(' ') + 1)]);
  }

  /** The pids of all processes that were started, oldest first. */
  get pids(): number[] {
    return this.notes.filter(([, what]) => what === 'started').map(([pid]) => pid);
  }

  get what(): string[] {
    return this.notes.map(([, what]) => what);
  }
}
