import { Worker } from 'node:worker_threads';

/** What the access log says about a request. Its parts become known one after the other. */
export type AccessEntry = {
  /** `X-Request-Id` of the response. */
  requestId: string;
  /** Id of the key that the caller has authenticated with; '' without one. */
  keyId: string;
  /**
   * The method and the path as the API describes it, such as `GET /api/v1/services/{id}`; '' for a path that the gateway does not
   * have. Never what the caller sent: a path or a query may contain a secret.
   */
  route: string;
  /** The status of the response; `UNANSWERED` until it begins. */
  status: number;
  /** When its head arrived, on the clock of `performance.now()`. */
  readonly startedMs: number;
};

type AccessLogOptions = {
  /** The beginning of each line, as in the other log: the role and the worker. */
  readonly fields: Readonly<Record<string, string | number>>;
  readonly log: { error(fields: object, message: string): void };
  /** Default: standard output. */
  readonly fd?: number;
  /** A power of two, at least twice `FLUSH_LENGTH`. */
  readonly maxWaitingBytes?: number;
};

/** The caller left before there was a response, or the gateway cut it off. The call's record has this status, too. */
const UNANSWERED = 499;
/** How long a line waits so that the thread gets several at once. A process that is killed loses the lines of this time. */
const FLUSH_MS = 100;
/** Lines with more characters than this in total are passed to the thread at once. */
const FLUSH_LENGTH = 65_536;
/** Maximum bytes of lines that the log's reader has not taken yet. Beyond it lines are lost, and the log says how many. */
const MAX_WAITING_BYTES = 4_194_304;
/** Read once: the getter takes as long as reading the clock. */
const { timeOrigin } = performance;
/** After the last line this ends the thread. */
const END = '\0';
/** How long the last lines may take when the process stops. */
const STOP_MS = 1_000;

/**
 * The access log (`ACCESS_LOG=on`): a line of JSON for each request that has ended. The event loop joins texts, and puts them into
 * memory that it shares with a thread. The thread writes them: a write waits for the reader of the log, and calls must not wait for
 * it. Alternatives and costs are in decision 0064.
 *
 * The memory is a ring. Both sides count bytes since the start, modulo 2^32: the event loop those that it has put there, the thread
 * those that it has written or given up. The bytes in between belong to the thread.
 *
 * Tested by test/observability/access-log.test.ts and test/integration/single-process.test.ts.
 */
export class AccessLog {
  readonly #log: AccessLogOptions['log'];
  readonly #fields: string;
  readonly #ring: Buffer;
  readonly #put = new Int32Array(new SharedArrayBuffer(4));
  readonly #written = new Int32Array(new SharedArrayBuffer(4));
  readonly #thread: Worker;
  #isRunning = true;
  #lines = '';
  #count = 0;
  /** Lines lost since the last line that reported a loss. */
  #lost = 0;
  #timer: NodeJS.Timeout | null = null;
  // Parts that many lines have in common. Making them anew for each line took longer than everything else.
  #timeMs = 0;
  #beginning = '';
  #route = '';
  #status = 0;
  #response = '';

  constructor({ fields, log, fd = 1, maxWaitingBytes = MAX_WAITING_BYTES }: AccessLogOptions) {
    this.#log = log;
    this.#fields = JSON.stringify(fields).slice(1, -1);
    this.#ring = Buffer.from(new SharedArrayBuffer(maxWaitingBytes));
    this.#thread = new Worker(new URL('./access-log-thread.mjs', import.meta.url), {
      workerData: { fd, ring: new Uint8Array(this.#ring.buffer), put: this.#put, written: this.#written },
      // The thread needs no settings, and those of the gateway contain secrets.
      env: {},
      execArgv: [],
      // Otherwise Node makes a stream of this process's standard output, and makes a pipe non-blocking for all processes that share
      // it.
      stdout: true,
      stderr: true,
    });
    this.#thread.on('error', (error) =>
      this.#log.error({ err: error }, 'the thread of the access log has failed: no more requests are logged'),
    );
    this.#thread.on('exit', () => {
      this.#isRunning = false;
    });
    this.#thread.unref();
  }

  /** The entry of a request whose head has arrived. */
  begin(): AccessEntry {
    return { requestId: '', keyId: '', route: '', status: UNANSWERED, startedMs: performance.now() };
  }

  /** Nothing in an entry needs escaping: ids, numbers, and the gateway's own names of its routes. */
  end({ requestId, keyId, route, status, startedMs }: AccessEntry): void {
    const nowMs = performance.now();
    const tenths = Math.round((nowMs - startedMs) * 10);
    this.#lines +=
      `${this.#beginningAt(nowMs)}${requestId}","key_id":"${keyId}${this.#responseTo(route, status)}` +
      `${Math.floor(tenths / 10)}.${tenths % 10},"msg":"request"}\n`;
    this.#count++;
    if (this.#lines.length > FLUSH_LENGTH) this.#flush();
    else this.#timer ??= setTimeout(() => this.#flush(), FLUSH_MS).unref();
  }

  /** Writes the remaining lines, if the reader takes them within a second. */
  async stop(): Promise<void> {
    this.#flush(END);
    if (!this.#isRunning) return;
    await new Promise<void>((resolve) => {
      // Does not wait for `terminate`: a thread that waits in a write ends only when somebody reads.
      const timer = setTimeout(resolve, STOP_MS);
      this.#thread.once('exit', () => {
        clearTimeout(timer);
        resolve();
      });
    });
    if (this.#isRunning) void this.#thread.terminate();
  }

  #flush(end = ''): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
    const text = this.#lostLine() + this.#lines + end;
    const [put = 0] = this.#put;
    const waiting = (put - Atomics.load(this.#written, 0)) | 0;
    if (this.#isRunning && waiting + text.length <= this.#ring.length) {
      const fitting = this.#ring.write(text, put & (this.#ring.length - 1), 'latin1');
      if (fitting < text.length) this.#ring.write(text.slice(fitting), 0, 'latin1');
      Atomics.store(this.#put, 0, put + text.length);
      Atomics.notify(this.#put, 0);
      this.#lost = 0;
    } else {
      this.#lost += this.#count;
    }
    this.#lines = '';
    this.#count = 0;
  }

  #lostLine(): string {
    if (this.#lost === 0) return '';
    const time = new Date().toISOString();
    return `{"level":40,"time":"${time}",${this.#fields},"lost":${this.#lost},"msg":"access log: lines were lost, because standard output was not read fast enough"}\n`;
  }

  #beginningAt(nowMs: number): string {
    const ms = Math.floor(timeOrigin + nowMs);
    if (ms !== this.#timeMs) {
      this.#timeMs = ms;
      this.#beginning = `{"level":30,"time":"${new Date(ms).toISOString()}",${this.#fields},"request_id":"`;
    }
    return this.#beginning;
  }

  #responseTo(route: string, status: number): string {
    if (route !== this.#route || status !== this.#status) {
      this.#route = route;
      this.#status = status;
      this.#response = `","route":"${route}","status":${status},"ms":`;
    }
    return this.#response;
  }
}
