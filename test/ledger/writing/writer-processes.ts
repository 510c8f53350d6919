import { type ChildProcess, spawn } from 'node:child_process';
import path from 'node:path';
import { SHARDS } from '../../support/store.ts';
import { until } from '../../support/wait.ts';
import { FEE_BASIS_POINTS, type Ledger } from '../support.ts';

type Options = { readonly batchSize?: number; readonly dieAfterCommit?: number; readonly shards?: number };

/** Writers in processes of their own, so that a test can kill them. */
export class WriterProcesses {
  readonly #ledger: Ledger;
  readonly #build: string;
  readonly #children: ChildProcess[] = [];

  /** @param build  the folder of the compiled sources */
  constructor(ledger: Ledger, build: string) {
    this.#ledger = ledger;
    this.#build = build;
  }

  start(options: Options = {}): ChildProcess {
    const settings = JSON.stringify({
      databaseUrl: this.#ledger.databaseUrl,
      redisUrl: this.#ledger.store.server.url,
      shards: SHARDS,
      batchSize: 50,
      feeBasisPoints: FEE_BASIS_POINTS,
      ...options,
    });
    const file = path.resolve('test/ledger/fixtures/writer-process.mjs');
    const child = spawn(process.execPath, [file, this.#build, settings], { stdio: ['pipe', 'ignore', 'inherit'] });
    this.#children.push(child);
    return child;
  }

  async killAll(): Promise<void> {
    await Promise.all(this.#children.splice(0).map(kill));
  }
}

export const ended = (child: ChildProcess): boolean => child.exitCode !== null || child.signalCode !== null;

export async function kill(child: ChildProcess): Promise<void> {
  child.kill('SIGKILL');
  await until(() => ended(child));
}
