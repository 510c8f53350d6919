// Clocks of programs that can jump ahead, and back. Linux with a C compiler only.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { scratchDir } from '../../support/stores.ts';

/** Whose clock is wrong: those of all processes of one kind. */
export const CLOCKED = ['gateway', 'writer', 'redis', 'postgres'] as const;
export type Clocked = (typeof CLOCKED)[number];

/** Longer than any retention, lease or date of expiry: nobody waits for its end. */
export const AHEAD_MS = 400 * 86_400_000;

/** Whether a time is of a clock that was ahead. */
export const isAhead = (ms: number): boolean => ms > Date.now() + AHEAD_MS / 2;

export class Clocks {
  readonly #folder: string;
  readonly #library: string;

  private constructor(folder: string, library: string) {
    this.#folder = folder;
    this.#library = library;
    for (const whose of CLOCKED) writeFileSync(path.join(folder, whose), Buffer.alloc(8));
  }

  /** @throws where there is no C compiler */
  static open(): Clocks {
    const folder = mkdtempSync(path.join(scratchDir(), 'clocks-'));
    const library = path.join(folder, 'clock-ahead.so');
    const source = fileURLToPath(new URL('./clock-ahead.c', import.meta.url));
    const { status, error, stderr } = spawnSync('cc', ['-shared', '-fPIC', '-O2', '-Wall', '-o', library, source], {
      encoding: 'utf8',
    });
    if (error !== undefined) throw new Error(`wrong clocks need a C compiler: ${error.message}`);
    if (status !== 0) throw new Error(`cannot compile ${source}: ${stderr}`);
    return new Clocks(folder, library);
  }

  /** Environment of a program whose clock can jump. */
  env(whose: Clocked): Record<string, string> {
    return { LD_PRELOAD: this.#library, TEST_CLOCKS: this.#folder, TEST_CLOCK: whose };
  }

  set(whose: Clocked, aheadMs: number): void {
    const seconds = Buffer.alloc(8);
    seconds.writeBigInt64LE(BigInt(aheadMs / 1_000));
    // Written in place: the programs have this file mapped.
    writeFileSync(path.join(this.#folder, whose), seconds, { flag: 'r+' });
  }
}
