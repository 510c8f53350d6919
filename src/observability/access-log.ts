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

// Places in the memory that the event loop and the thread share; access-log-thread.mjs has the same.
/** Place of the last byte that the thread has written or given up. */
const WRITTEN = 0;
const HANDED_OVER = 1;
/** Grows with each change of the others. The thread waits for that. */
const SIGNALS = 2;
/** 1: the thread ends when it has written everything. */
const STOPPED = 3;

/** The caller left before there was a response, or the gateway cut it off. It is the status of such a call in its record, too. */
const UNANSWERED = 499;
/** How long a line waits for others, with which the thread takes it. A process that is killed loses as much. */
const FLUSH_MS = 100;
/** More bytes than this are handed over at once. */
const FLUSH_BYTES = 65_536;
/** Maximum bytes of lines that the reader of the log has not taken. Beyond it lines are lost, and the log says how many. */
const MAX_WAITING_BYTES = 4_194_304;
/** Read once: the getter takes as long as the clock. */
const { timeOrigin } = performance;
/** How long the last lines may take when the process stops. */
const STOP_MS = 1_000;

/**
 * The access log (`ACCESS_LOG=on`): a line of JSON for each request that has ended. The event loop only puts it into a ring that it
 * shares with a thread. The thread writes, because a write waits for the reader of the log, and calls must not wait for that. What was
 * tried, and what a line costs, is in decision 0064.
 *
 *   ring:  … taken │ handed over, the thread writes it │ put, not handed over │ free …
 *                written                          handedOver                 end
 *
 * The three places count bytes since the start, modulo 2^32.
 *
 * Tested by test/observability/access-log.test.ts and test/integration/single-process.test.ts.
 */
export class AccessLog {
  readonly #log: AccessLogOptions['log'];
  readonly #fields: string;
  /** Its size is a power of two: the places are counted modulo 2^32. */
  readonly #ring: Buffer;
  readonly #state = new Int32Array(new SharedArrayBuffer(16));
  readonly #thread: Worker;
  #isRunning = true;
  #end = 0;
  #handedOver = 0;
  /** Lines lost since the last one that says so. */
  #lost = 0;
  #timer: NodeJS.Timeout | null = null;
  #timeMs = 0;
  #beginning = '';

  /** @param options.maxWaitingBytes  a power of two */
  constructor({ fields, log, fd = 1, maxWaitingBytes = MAX_WAITING_BYTES }: AccessLogOptions) {
    this.#log = log;
    this.#fields = JSON.stringify(fields).slice(1, -1);
    this.#ring = Buffer.from(new SharedArrayBuffer(maxWaitingBytes));
    this.#thread = new Worker(new URL('./access-log-thread.mjs', import.meta.url), {
      workerData: { fd, ring: new Uint8Array(this.#ring.buffer), state: this.#state },
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
    const tenths = Math.round((nowMs - startedMs) * 10);
    const line =
      `${this.#beginningAt(nowMs)}${requestId}","key_id":"${keyId}","route":"${route}",` +
      `"status":${status},"ms":${Math.floor(tenths / 10)}.${tenths % 10},"msg":"request"}\n`;
    const lostLine = this.#lost === 0 ? '' : this.#lostLine(nowMs);
    const waiting = (this.#end - Atomics.load(this.#state, WRITTEN)) | 0;
    if (!this.#isRunning || waiting + lostLine.length + line.length > this.#ring.length) {
      this.#lost++;
      return;
    }
    if (lostLine !== '') {
      this.#put(lostLine);
      this.#lost = 0;
    }
    this.#put(line);
    if (((this.#end - this.#handedOver) | 0) > FLUSH_BYTES) this.#handOver();
    else this.#timer ??= setTimeout(() => this.#handOver(), FLUSH_MS).unref();
  }

  /** Writes what is left, as far as the reader takes it within a second. */
  async stop(): Promise<void> {
    if (!this.#isRunning) return;
    await new Promise<void>((resolve) => {
      // Not after `terminate`: a thread that waits in a write ends only when somebody reads.
      const timer = setTimeout(resolve, STOP_MS);
      this.#thread.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
      this.#handOver();
      // After the last lines: a thread that sees this has all of them.
      Atomics.store(this.#state, STOPPED, 1);
      this.#signal();
    });
    if (this.#isRunning) void this.#thread.terminate();
  }

  #put(text: string): void {
    const written = this.#ring.write(text, this.#end & (this.#ring.length - 1), 'latin1');
    if (written < text.length) this.#ring.write(text.slice(written), 0, 'latin1');
    this.#end = (this.#end + text.length) | 0;
  }

  #handOver(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    this.#handedOver = this.#end;
    Atomics.store(this.#state, HANDED_OVER, this.#end);
    this.#signal();
  }

  #signal(): void {
    Atomics.add(this.#state, SIGNALS, 1);
    Atomics.notify(this.#state, SIGNALS);
  }

  #lostLine(nowMs: number): string {
    const time = new Date(timeOrigin + nowMs).toISOString();
    return `{"level":40,"time":"${time}",${this.#fields},"lost":${this.#lost},"msg":"access log: lines were lost, because nobody read them"}\n`;
  }

  /** What all lines of this millisecond begin with. Under load many requests end in one, and writing the time takes long. */
  #beginningAt(nowMs: number): string {
    const ms = Math.floor(timeOrigin + nowMs);
    if (ms !== this.#timeMs) {
      this.#timeMs = ms;
      this.#beginning = `{"level":30,"time":"${new Date(ms).toISOString()}",${this.#fields},"request_id":"`;
    }
    return this.#beginning;
  }
}
