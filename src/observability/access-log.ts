import { Worker } from 'node:worker_threads';

/** What the access log says of a request. Its parts become known one after the other. */
export type AccessEntry = {
  /** `X-Request-Id` of the response. */
  requestId: string;
  /** Id of the key that the caller has proved to have; '' without one. */
  keyId: string;
  /**
   * The method and the path as the API describes it, such as `GET /api/v1/services/{id}`; '' for a path that the gateway does not
   * have. Never what the caller wrote: a path or a query may contain a secret.
   */
  route: string;
  /** Of the response; `UNANSWERED` until it begins. */
  status: number;
  /** When its head arrived, on the clock of `performance.now()`. */
  readonly startedMs: number;
};

type AccessLogOptions = {
  /** What each line begins with, as the lines of the log do: the role and the worker. */
  readonly fields: Readonly<Record<string, string | number>>;
  readonly log: { error(fields: object, message: string): void };
  /** Default: standard output. */
  readonly fd?: number;
  readonly maxWaitingBytes?: number;
};

/** The caller left before there was a response, or the gateway cut it off. It is the status of such a call in its record, too. */
const UNANSWERED = 499;
/** How long a line waits for others, with which it travels to the thread. A process that is killed loses as much. */
const FLUSH_MS = 100;
/** Lines with more characters than this go to the thread at once. */
const FLUSH_LENGTH = 65_536;
/** Maximum bytes of lines that the reader of the log has not taken. Beyond it lines are lost, and the log says how many. */
const MAX_WAITING_BYTES = 4_194_304;
/** How long the last lines may take when the process stops. */
const STOP_MS = 1_000;

/**
 * The access log (`ACCESS_LOG=on`): a line of JSON for each request that has ended. The event loop only joins texts. A thread writes
 * them, because a write waits for the reader of the log, and calls must not wait for that. What was tried instead, and what a line
 * costs, is in decision 0064.
 *
 * Tested by test/observability/access-log.test.ts and test/integration/single-process.test.ts.
 */
export class AccessLog {
  readonly #log: AccessLogOptions['log'];
  readonly #fields: string;
  readonly #maxWaitingBytes: number;
  readonly #thread: Worker;
  /** How many bytes the thread has written or given up since the start, modulo 2^32. The thread adds to it. */
  readonly #written = new Int32Array(new SharedArrayBuffer(4));
  /** How many bytes were handed to the thread, modulo 2^32. */
  #handedOver = 0;
  #isRunning = true;
  #lines = '';
  #count = 0;
  /** Lines lost since the last one that says so. */
  #lost = 0;
  #timer: NodeJS.Timeout | null = null;
  #timeMs = 0;
  #time = '';

  constructor({ fields, log, fd = 1, maxWaitingBytes = MAX_WAITING_BYTES }: AccessLogOptions) {
    this.#log = log;
    this.#fields = JSON.stringify(fields).slice(1, -1);
    this.#maxWaitingBytes = maxWaitingBytes;
    this.#thread = new Worker(new URL('./access-log-thread.mjs', import.meta.url), {
      workerData: { fd, written: this.#written },
      // It needs no settings, and those of the gateway contain secrets.
      env: {},
      execArgv: [],
      // Otherwise Node makes a stream of this process's standard output, and a pipe non-blocking for all that share it.
      stdout: true,
      stderr: true,
    });
    this.#thread.on('error', (error) => this.#log.error({ err: error }, 'the access log has ended'));
    this.#thread.on('exit', () => {
      this.#isRunning = false;
    });
    this.#thread.unref();
  }

  /** The entry of a request whose head has arrived. */
  begin(): AccessEntry {
    return { requestId: '', keyId: '', route: '', status: UNANSWERED, startedMs: performance.now() };
  }

  /** Nothing in an entry needs escapes: ids, numbers, and what the gateway itself calls its routes. */
  end({ requestId, keyId, route, status, startedMs }: AccessEntry): void {
    const nowMs = performance.now();
    this.#lines +=
      `{"level":30,"time":"${this.#timeAt(nowMs)}",${this.#fields},"request_id":"${requestId}","key_id":"${keyId}",` +
      `"route":"${route}","status":${status},"ms":${Math.round((nowMs - startedMs) * 10) / 10},"msg":"request"}\n`;
    this.#count++;
    if (this.#lines.length > FLUSH_LENGTH) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  /** Writes what is left, as far as the reader takes it within a second. */
  async stop(): Promise<void> {
    this.#flush();
    if (!this.#isRunning) return;
    await new Promise<void>((resolve) => {
      // Not after `terminate`: a thread that waits in a write ends only when somebody reads.
      const timer = setTimeout(resolve, STOP_MS);
      this.#thread.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      this.#thread.postMessage(null);
    });
    if (this.#isRunning) void this.#thread.terminate();
  }

  #flush(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const waiting = (this.#handedOver - Atomics.load(this.#written, 0)) | 0;
    const hasRoom = this.#isRunning && waiting + this.#lines.length <= this.#maxWaitingBytes;
    if (hasRoom) {
      const text = this.#lostLine() + this.#lines;
      this.#handedOver = (this.#handedOver + text.length) | 0;
      this.#thread.postMessage(text);
      this.#lost = 0;
    } else {
      this.#lost += this.#count;
    }
    this.#lines = '';
    this.#count = 0;
  }

  #lostLine(): string {
    if (this.#lost === 0) return '';
    const time = this.#timeAt(performance.now());
    return `{"level":40,"time":"${time}",${this.#fields},"lost":${this.#lost},"msg":"access log: lines were lost, because nobody read them"}\n`;
  }

  /** Under load many requests end within a millisecond, and writing the time takes as long as all the rest of a line. */
  #timeAt(nowMs: number): string {
    const ms = Math.floor(performance.timeOrigin + nowMs);
    if (ms !== this.#timeMs) {
      this.#timeMs = ms;
      this.#time = new Date(ms).toISOString();
    }
    return this.#time;
  }
}
