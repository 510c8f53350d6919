import type { CallerStream, RequestHead } from '../gate/caller-io.ts';
import type { Log } from '../observability/log.ts';
import { UwsCallerStream } from './caller-stream.ts';
import { EXCLUSIVE_PORT, type ListenWithOptions, portTaken, SHARED_PORT } from './port.ts';
import { copyRequestHead } from './request-head.ts';
import { shortTurn } from './short-turn.ts';
import type { StreamOwner } from './stream-owner.ts';
import type { HttpRequest, HttpResponse, LoadedUws, TemplatedApp, us_listen_socket } from './uws.ts';

/** Resolution of idle detection; the addon would cut an idle caller after 10 s, give or take 4. */
const TICK_MS = 4_000;
/**
 * How long a drain waits for connections once every response is over. The addon may hold the last 16 KiB of a response that
 * it has taken for finished, does not say so, and forgets them when it closes.
 */
const TAIL_MS = 1_000;

export type ServerOptions = {
  readonly uws: LoadedUws;
  readonly host: string;
  readonly port: number;
  /** Whether other processes serve the same port: the system spreads connections over all that listen. */
  readonly sharesPort?: boolean;
  /** Proxies in front whose `X-Forwarded-For` is believed; 0: none. */
  readonly trustedProxyHops: number;
  /** A caller that neither takes the response nor sends its request for this long is cut. */
  readonly idleCallerSeconds: number;
  /** Bytes of a request that are still read once its response is sent. */
  readonly maxRequestBodyBytes: number;
  readonly isCall: (head: RequestHead) => boolean;
  readonly onCall: (head: RequestHead, stream: CallerStream) => void;
  readonly onRequest: (head: RequestHead, stream: CallerStream) => void;
  readonly log: Log;
};

/** The public HTTP edge. */
export class HttpServer implements StreamOwner {
  readonly #options: ServerOptions;
  readonly #app: TemplatedApp;
  /** In any order: each knows its place, so that leaving is a swap with the last. A Set took 0.3 µs a call. */
  readonly #open: UwsCallerStream[] = [];
  #connections = 0;
  /** On its way from the first route to the last, which the addon calls at once. */
  #passedOn: { readonly head: RequestHead; readonly connection: HttpResponse } | null = null;
  /** Of this tick and the one before: idle for that long, a gateway has no tail left to send. */
  #finishedNow = false;
  #finishedBefore = false;
  #awaitsConnections = false;
  #listenSocket: us_listen_socket | null = null;
  #ticker: NodeJS.Timeout | null = null;
  #whenDrained: (() => void)[] = [];
  readonly trustedProxyHops: number;
  readonly maxRequestBodyBytes: number;
  draining = false;
  closing = false;
  port = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
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
      const app = this.#app as unknown as ListenWithOptions;
      app.listen(host, port, sharesPort ? SHARED_PORT : EXCLUSIVE_PORT, (socket) => {
        if (socket === false) {
          reject(portTaken(host, port));
          return;
        }
        this.#listenSocket = socket;
        this.port = uws.uws.us_socket_local_port(socket);
        this.#ticker = setInterval(() => this.#tick(), TICK_MS);
        this.#ticker.unref();
        resolve(this.port);
      });
    });
  }

  /** Responses under way. */
  get open(): number {
    return this.#open.length;
  }

  /**
   * Stops accepting, and waits for what is under way up to the deadline, and a little for what was under way just before.
   * From now on every answer closes its connection.
   *
   * @param options.handOver others serve this port, which is shared: also waits until all connections have gone, so that
   *     no caller's next request meets one that is just being closed. Callers that go on calling leave with their next
   *     answer; the addon closes idle connections after about 10 s.
   * @returns calls that are cut by closing now
   */
  async drain(deadlineMs: number, { handOver = false }: { readonly handOver?: boolean } = {}): Promise<number> {
    if (handOver) await shortTurn();
    this.draining = true;
    this.#awaitsConnections = handOver;
    if (this.#listenSocket !== null) this.#options.uws.uws.us_listen_socket_close(this.#listenSocket);
    this.#listenSocket = null;
    const deadline = performance.now() + deadlineMs;
    await this.#drained(deadline);
    if (!handOver && (this.#finishedNow || this.#finishedBefore)) {
      // Callers leave with their last answer, which tells them to. Idle ones do not, and are not waited for any longer.
      this.#awaitsConnections = true;
      await this.#drained(Math.min(performance.now() + TAIL_MS, deadline));
      this.#awaitsConnections = false;
      await this.#drained(deadline);
    }
    return this.#open.length;
  }

  /** Closes all connections at once. */
  close(): void {
    if (this.#ticker !== null) clearInterval(this.#ticker);
    this.closing = true;
    this.#app.close();
  }

  onFinished(stream: UwsCallerStream): void {
    this.#finishedNow = true;
    const last = this.#open.pop() as UwsCallerStream;
    if (last !== stream) {
      this.#open[stream.place] = last;
      last.place = stream.place;
    }
    this.#checkDrained();
  }

  readonly #onConnection = (_response: HttpResponse, change: number): void => {
    this.#connections += change;
    this.#checkDrained();
  };

  /** @param deadline  as `performance.now()` counts */
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
   * Each route that sees a request gets a handle of its own, so a chunked one, and every one during a drain, goes on to the last
   * route: with a handle that outlives the response its connection can be closed.
   */
  readonly #onFirstRoute = (response: HttpResponse, request: HttpRequest): void => {
    const head = copyRequestHead(request);
    if (head.bodyLength < 0 || this.draining) {
      this.#passedOn = { head, connection: response };
      request.setYield(true);
    } else this.#onRequest(response, head, null);
  };

  readonly #onLastRoute = (response: HttpResponse, request: HttpRequest): void => {
    const passedOn = this.#passedOn;
    this.#passedOn = null;
    this.#onRequest(response, passedOn?.head ?? copyRequestHead(request), passedOn?.connection ?? null);
  };

  /** @param connection  a second handle, when there is one */
  #onRequest(response: HttpResponse, head: RequestHead, connection: HttpResponse | null): void {
    const { isCall, onCall, onRequest } = this.#options;
    const stream = new UwsCallerStream(response, head, this, connection);
    stream.place = this.#open.length;
    this.#open.push(stream);
    if (isCall(head)) onCall(head, stream);
    else onRequest(head, stream);
  }

  #tick(): void {
    this.#finishedBefore = this.#finishedNow;
    this.#finishedNow = false;
    const maxIdleTicks = Math.ceil((this.#options.idleCallerSeconds * 1000) / TICK_MS);
    // From the end: what takes the place of one that leaves was looked at before.
    for (let i = this.#open.length - 1; i >= 0; i--) this.#open[i]?.tick(maxIdleTicks);
  }
}
