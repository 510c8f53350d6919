import { type ChildProcess, fork } from 'node:child_process';
import type { MetricFamily } from '../observability/metrics.ts';
import type { FromChild, ToChild } from './messages.ts';

/** One process of ours, as the supervisor sees it. */
export class Child {
  readonly #process: ChildProcess;
  readonly #answers = new Map<number, (families: readonly MetricFamily[]) => void>();
  #requests = 0;
  #readyAt: number | null = null;
  #onReady: () => void = () => {};
  #hasExited = false;
  /** How it ended, in words; never rejects. */
  readonly exited: Promise<string>;

  /** Starts `node entry ...args` with our environment, output and process group. */
  constructor(entry: string, args: readonly string[]) {
    // 'advanced' because JSON has no NaN, and some metrics are.
    this.#process = fork(entry, args, { serialization: 'advanced' });
    this.#process.on('message', (message) => this.#onMessage(message as FromChild));
    this.exited = new Promise<string>((resolve) => {
      this.#process.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
      // It could not be started, or not be told something: the second is followed by its exit.
      this.#process.on('error', (error) => {
        if (this.#process.pid === undefined) resolve(error.message);
      });
    });
    void this.exited.then(() => {
      this.#hasExited = true;
    });
  }

  get pid(): number | undefined {
    return this.#process.pid;
  }

  /** For how long it has been ready; 0: it never was. */
  get readyMs(): number {
    return this.#readyAt === null ? 0 : performance.now() - this.#readyAt;
  }

  /** Rejects when it ends before it is ready, or is not within `timeoutMs`: then it is killed. */
  async untilReady(timeoutMs: number): Promise<void> {
    const ready = new Promise<null>((resolve) => {
      this.#onReady = () => resolve(null);
    });
    const timer = setTimeout(() => this.kill(), timeoutMs);
    const end = await Promise.race([ready, this.exited]);
    clearTimeout(timer);
    if (end !== null) throw new Error(`it ended before it was ready: ${end}`);
  }

  /** Asks it to drain and end. @returns false when it had to be killed after `timeoutMs` */
  async stop(replaced: boolean, timeoutMs: number): Promise<boolean> {
    let inTime = true;
    const timer = setTimeout(() => {
      inTime = false;
      this.kill();
    }, timeoutMs);
    this.#tell({ type: 'stop', replaced });
    await this.exited;
    clearTimeout(timer);
    return inTime;
  }

  kill(): void {
    this.#process.kill('SIGKILL');
  }

  /** @returns null when it does not answer in time */
  metrics(timeoutMs: number): Promise<readonly MetricFamily[] | null> {
    const request = this.#requests++;
    return new Promise((resolve) => {
      const timer = setTimeout(() => {
        this.#answers.delete(request);
        resolve(null);
      }, timeoutMs);
      this.#answers.set(request, (families) => {
        clearTimeout(timer);
        this.#answers.delete(request);
        resolve(families);
      });
      this.#tell({ type: 'metrics', request });
    });
  }

  #tell(message: ToChild): void {
    // What cannot be told any more is no news to somebody who is gone.
    if (!this.#hasExited && this.#process.connected) this.#process.send(message, () => {});
  }

  #onMessage(message: FromChild): void {
    if (message.type === 'metrics') {
      this.#answers.get(message.request)?.(message.families);
      return;
    }
    this.#readyAt = performance.now();
    this.#onReady();
  }
}
