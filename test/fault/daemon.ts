// A program that is started again whenever it ends, as by an init system.

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import {
  killProcess,
  type OwnedProcess,
  signalProcess,
  spawnOwned,
  stopProcess,
} from '../../scripts/local/processes.mjs';
import { scratchDir, scratchRunDir } from '../support/stores.ts';
import { until } from '../support/wait.ts';

type DaemonOptions = {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Whether this part of the output says that the program works. */
  readonly isReady: (output: string) => boolean;
};

const START_MS = 60_000;

export class Daemon {
  readonly #options: DaemonOptions;
  readonly #logFile: string;
  #process: OwnedProcess | null = null;
  #startedAt = 0;

  constructor(options: DaemonOptions) {
    this.#options = options;
    this.#logFile = path.join(scratchDir(), `${options.name}.log`);
  }

  /** Everything the program has written; nothing if it was never started. */
  get output(): string {
    return existsSync(this.#logFile) ? readFileSync(this.#logFile, 'utf8') : '';
  }

  /** Starts the program, and starts it again if it ends during its start, until it works. */
  async ensure(): Promise<void> {
    await until(() => {
      if (this.#process === null || this.#process.hasExited()) this.#spawn();
      return this.#options.isReady(this.output.slice(this.#startedAt));
    }, START_MS);
  }

  #spawn(): void {
    const { name, args, env } = this.#options;
    this.#startedAt = this.#process === null ? 0 : this.output.length;
    this.#process = spawnOwned({
      runDir: scratchRunDir(),
      name,
      command: process.execPath,
      args: [...args],
      env: { PATH: process.env.PATH, ...env },
      logFile: this.#logFile,
    });
  }

  signal(signal: 'SIGSTOP' | 'SIGCONT'): void {
    if (this.#process !== null) signalProcess(this.#process.record, signal);
  }

  /** Kills the program and all its children, and waits until it has ended. */
  async kill(): Promise<void> {
    if (this.#process === null) return;
    await killProcess(this.#process.record);
    await this.#process.exited;
  }

  async stop(): Promise<void> {
    if (this.#process === null) return;
    await stopProcess(this.#process.record);
    this.#process.forget();
  }
}
