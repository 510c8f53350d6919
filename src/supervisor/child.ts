import { type ChildProcess, fork } from 'node:child_process';
import type { MetricFamily } from '../observability/metrics.ts';
import type { FromChild, ToChild } from './messages.ts';

/** A process that the supervisor started, seen from the supervisor. Tested by test/supervisor/slot.test.ts. */
export class Child {
  readonly #process: ChildProcess;
  readonly #answers = new Map<number, (families: readonly MetricFamily[]) => void>();
  #requests = 0;
  #readyAt: number | null = null;
  #onReady: () => void = () => {};
  #hasExited = false;
  /** Resolves with words that say how the process ended; never rejects. */
  readonly exited: Promise<string>;

  /** Starts `node entry ...args` with this process's environment, output and process group. */
  constructor(entry: string, args: readonly string[]) {
    // 'advanced' instead of JSON, because some metrics are NaN, which JSON cannot express.
    this.#process = fork(entry, args, { serialization: 'advanced' });
    this.#process.on('message', (message) => this.#onMessage(message as FromChild));
    this.exited = new Promise<string>((resolve) => {
      this.#process.once('exit', (code, signal) => resolve(signal ?? `exit code ${code}`));
      // An 'error' means that the process could not be started (it has no pid then), or that a message could not be sent. In
      // the second case the process is ending, and 'exit' follows.
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

  /** How long the process has been ready; 0 if it never was. */
  get readyMs(): number {
    return this.#readyAt === null ? 0 : performance.now() - this.#readyAt;
  }

  /** Rejects when the process ends before it is ready. A process that is not ready within `timeoutMs` is killed. */
  async untilReady(timeoutMs: number): Promise<void> {
    const ready = new Promise<null>((resolve) => {
      this.#onReady = () => resolve(null);
    });
    const timer = setTimeout(() => this.kill(), timeoutMs);
    const end = await Promise.race([ready, this.exited]);
    clearTimeout(timer);
    if (end !== null) throw new Error(`it ended before it was ready: ${end}`);
  }

  /** Asks the process to drain and end. @returns false when it had not ended after `timeoutMs` and was killed */
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

  /** @returns null when the process does not answer within `timeoutMs` */
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
    // A message that can no longer be sent is dropped: the process is about to end, or has ended.
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
