import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { AccessLog } from '../observability/access-log.ts';
import type { Log } from '../observability/log.ts';
import { type StreamOwner, UwsCallerStream } from './caller-stream.ts';
import { EXCLUSIVE_PORT, portTaken, SHARED_PORT } from './port.ts';
import { copyRequestHead, headerOf } from './request-head.ts';
import { shortTurn } from './short-turn.ts';
import type { HttpRequest, HttpResponse, LoadedUws, TemplatedApp, us_listen_socket } from './uws.ts';

/**
 * How often the server checks for idle callers. Each check restarts the addon's own timeout, which would cut an idle caller after
 * 10 s, give or take 4. So this must stay below 6 s. Five ticks are the 10 s over which the pace of a request body is judged
 * (upload-pace.ts).
 */
const TICK_MS = 2_000;
/**
 * If a response ended less than this many ticks ago, the addon may not have sent its last bytes yet. It is 6 to 8 s, in which a
 * caller takes 16 KiB even on a very slow line.
 */
const TAIL_TICKS = 4;
/**
 * Maximum time that a drain waits for connections to close after the last response has ended. The addon may still buffer the last
 * 16 KiB of a response that counts as ended. It does not report these bytes, and drops them when the server closes.
 */
const TAIL_MS = 1_000;

export type ServerOptions = {
  readonly uws: LoadedUws;
  readonly host: string;
  readonly port: number;
  /** Whether other processes listen on the same port; the operating system spreads new connections over all of them. */
  readonly sharesPort?: boolean;
  /** How many proxies in front of the gateway are trusted to write `X-Forwarded-For`; 0 if none. */
  readonly trustedProxyHops: number;
  /** A caller that neither reads its response nor sends its request for this long is cut off. */
  readonly idleCallerSeconds: number;
  /** Maximum bytes that are read and dropped of a request whose response has been sent; beyond it the connection is closed. */
  readonly maxRequestBodyBytes: number;
  /** How often the server checks for idle and slow callers. Default: TICK_MS. */
  readonly tickMs?: number;
  readonly isCall: (head: RequestHead) => boolean;
  readonly onCall: (head: RequestHead, stream: CallerStream) => void;
  readonly onRequest: (head: RequestHead, stream: CallerStream) => void;
  /** A browser asks what a page may send (preflight.ts), on the path of a call or any other. */
  readonly onPreflight: (head: RequestHead, stream: CallerStream) => void;
  /** Default null: none. */
  readonly accessLog?: Pick<AccessLog, 'begin' | 'end'> | null;
  readonly log: Log;
};

/**
 * The public HTTP edge: accepts connections, and passes each request to the proxy, to the API, or to the code that answers
 * preflights.
 *
 * Tested by test/http/drain.test.ts and test/http/slow-callers.test.ts.
 */
export class HttpServer implements StreamOwner {
  readonly #options: ServerOptions;
  readonly #app: TemplatedApp;
  /**
   * The open streams, in no order. Each knows its index: when a stream ends, the last one in the list takes its place. A Set took
   * 0.3 µs per call.
   */
  readonly #open: UwsCallerStream[] = [];
  #connections = 0;
  /** A request that the first route passes on to the last one. The addon invokes the last route immediately afterwards. */
  #passedOn: { readonly head: RequestHead; readonly connection: HttpResponse } | null = null;
  #ticks = 0;
  /** When a response last ended, in ticks. */
  #finishedTick = -TAIL_TICKS;
  #awaitsConnections = false;
  #listenSocket: us_listen_socket | null = null;
  #ticker: NodeJS.Timeout | null = null;
  #whenDrained: (() => void)[] = [];
  readonly #tickMs: number;
  readonly trustedProxyHops: number;
  readonly maxRequestBodyBytes: number;
  draining = false;
  closing = false;
  port = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#tickMs = options.tickMs ?? TICK_MS;
    this.trustedProxyHops = options.trustedProxyHops;
    this.maxRequestBodyBytes = options.maxRequestBodyBytes;
    this.#app = options.uws.uws.App();
    this.#app.filter(this.#onConnection as Parameters<TemplatedApp['filter']>[0]);
    for (const method of ['get', 'post', 'put', 'patch', 'del'] as const) this.#app[method]('/*', this.#onFirstRoute);
    // The last route must match everything: the addon closes a socket whose request no route takes.
    this.#app.any('/*', this.#onLastRoute);
  }

  /** @returns the port listened on (useful when 0 was asked for). Rejects when it is taken. */
  listen(): Promise<number> {
    const { host, port, sharesPort, uws } = this.#options;
    return new Promise((resolve, reject) => {
      const app = this.#app;
      app.listen(host, port, sharesPort ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
        if (socket === false) {
          reject(portTaken(host, port));
          return;
        }
        this.#listenSocket = socket;
        this.port = uws.uws.us_socket_local_port(socket);
        resolve(this.port);
      });
    });
  }

  /** Responses under way. */
  get open(): number {
    return this.#open.length;
  }

  /**
   * Stops accepting connections, and waits until all open responses have ended. If a response ended in the past few seconds,
   * waits up to TAIL_MS longer for its last bytes. Never waits beyond the deadline. Every response whose head is sent from now on
   * closes its connection.
   *
   * @param options.handOver  other processes serve this port too: also waits until all connections have closed, so that no caller
   *   sends its next request on a connection that is just being closed. A busy caller's connection closes with its next response;
   *   the addon closes idle connections after about 10 s.
   * @returns how many open requests close() would cut now
   */
  async drain(deadlineMs: number, { handOver = false }: { readonly handOver?: boolean } = {}): Promise<number> {
    if (handOver) await shortTurn();
    this.draining = true;
    this.#awaitsConnections = handOver;
    if (this.#listenSocket !== null) this.#options.uws.uws.us_listen_socket_close(this.#listenSocket);
    this.#listenSocket = null;
    const deadline = performance.now() + deadlineMs;
    await this.#drained(deadline);
    if (!handOver && this.#hasTail) {
      // When a caller has read the last bytes of a response that says `connection: close`, it closes the connection. Idle
      // connections stay open, so TAIL_MS bounds this wait.
      this.#awaitsConnections = true;
      await this.#drained(Math.min(performance.now() + TAIL_MS, deadline));
      this.#awaitsConnections = false;
      await this.#drained(deadline);
    }
    return this.#open.length;
  }

  /** Closes all connections at once. */
  close(): void {
    this.closing = true;
    this.#app.close();
    this.#rest();
  }

  /** Whether the addon may have last bytes of a response that has ended. */
  get #hasTail(): boolean {
    return this.#ticks - this.#finishedTick < TAIL_TICKS;
  }

  onFinished(stream: UwsCallerStream): void {
    this.#finishedTick = this.#ticks;
    if (stream.accessEntry !== undefined) this.#options.accessLog?.end(stream.accessEntry);
    const last = this.#open.pop() as UwsCallerStream;
    if (last !== stream) {
      this.#open[stream.index] = last;
      last.index = stream.index;
    }
    this.#checkDrained();
  }

  readonly #onConnection = (_response: HttpResponse, change: number): void => {
    this.#connections += change;
    if (this.#ticker === null && change > 0) this.#ticker = setInterval(() => this.#tick(), this.#tickMs).unref();
    this.#checkDrained();
  };

  /** Stops the timer until the next connection: it would wake an idle process. */
  #rest(): void {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    this.#ticker = null;
  }

  /** @param deadline  on the clock of `performance.now()` */
  #drained(deadline: number): Promise<void> {
    if (this.#isDrained()) return Promise.resolve();
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, Math.max(0, deadline - performance.now()));
      this.#whenDrained.push(() => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  #isDrained(): boolean {
    return this.#open.length === 0 && (!this.#awaitsConnections || this.#connections === 0);
  }

  #checkDrained(): void {
    if (!this.draining || !this.#isDrained()) return;
    for (const resolve of this.#whenDrained.splice(0)) resolve();
  }

  /**
   * The addon gives each route that sees a request its own handle, and the first route's handle stays valid when the response has
   * ended. So chunked requests, and all requests during a drain, are passed on to the last route: it answers with its own handle,
   * and the first one can still close the connection.
   *
   * The addon also writes a `100 Continue` for each route, so a request that expects one is not passed on. After a chunked response
   * its connection is then closed by the addon's timeout (`endChunks`).
   */
  readonly #onFirstRoute = (response: HttpResponse, request: HttpRequest): void => {
    const head = copyRequestHead(request);
    if ((head.bodyLength < 0 || this.draining) && headerOf(head.headers, 'expect') !== '100-continue') {
      this.#passedOn = { head, connection: response };
      request.setYield(true);
    } else this.#onRequest(response, head, null);
  };

  readonly #onLastRoute = (response: HttpResponse, request: HttpRequest): void => {
    const passedOn = this.#passedOn;
    this.#passedOn = null;
    this.#onRequest(response, passedOn?.head ?? copyRequestHead(request), passedOn?.connection ?? null);
  };

  /** @param connection  a second handle of the same request, or null */
  #onRequest(response: HttpResponse, head: RequestHead, connection: HttpResponse | null): void {
    const { isCall, onCall, onRequest, onPreflight, accessLog = null } = this.#options;
    const stream = new UwsCallerStream(response, head, this, connection);
    if (accessLog !== null) stream.accessEntry = accessLog.begin();
    stream.index = this.#open.length;
    this.#open.push(stream);
    // Of all OPTIONS, only a preflight has no fault.
    if (head.method === 'OPTIONS' && head.fault === null) onPreflight(head, stream);
    else if (isCall(head)) onCall(head, stream);
    else onRequest(head, stream);
  }

  #tick(): void {
    this.#ticks++;
    const maxIdleTicks = Math.ceil((this.#options.idleCallerSeconds * 1000) / this.#tickMs);
    // Backwards: when a tick ends a stream, the last stream in the list takes its place, and that stream has had its tick
    // already.
    for (let i = this.#open.length - 1; i >= 0; i--) this.#open[i]?.tick(maxIdleTicks);
    if (this.#connections === 0 && this.#open.length === 0 && !this.#hasTail) this.#rest();
  }
}
