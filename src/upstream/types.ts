import type { Destination } from './destination.ts';
import type { UpstreamError } from './upstream-error.ts';

/** One request, ready to be written. The client checks only `path` and `bodyLength` again. */
export type UpstreamRequest = {
  readonly destination: Destination;
  /** The account whose call it is; not empty. Accounts share the connections of a pool (see `Pool`). */
  readonly account: string;
  /** GET, HEAD, POST, PUT, PATCH or DELETE. */
  readonly method: string;
  /** Path and query as they go on the wire, starting with '/'. */
  readonly path: string;
  /**
   * `name: value\r\n…`, serialised and validated by the code that makes the request. Every character must be at most U+00FF:
   * latin1 keeps only the low byte, so U+010A would become a line feed. Without Host, framing or connection headers: the client
   * writes these.
   */
  readonly headerLines: string;
  /** 0: no body. n: exactly n bytes, sent with Content-Length. -1: length unknown, sent chunked. */
  readonly bodyLength: number;
  /** Whether the service is told that trailers are accepted (`TE: trailers`), and `onEnd` gets them; otherwise they are dropped. */
  readonly wantsTrailers?: boolean;
  /** Longest silence between the end of the request and the response head, and longest time without progress of an upload. */
  readonly headTimeoutMs: number;
  /** Longest silence within the response body. The time starts again from zero when a pause of the call is over. */
  readonly idleBodyTimeoutMs: number;
};

/** What determines where the body ends; 'none': there is no body. Only a chunked one may have trailers. */
export type Framing = 'none' | 'length' | 'chunked' | 'close';

export interface ResponseHead {
  readonly status: number;
  /** Flat [name, value, …]; names as sent, values without surrounding whitespace, latin1. */
  readonly headers: string[];
  /** True when all header values are ASCII, without obs-text (RFC 9110 §5.5). */
  readonly isAscii: boolean;
  /** The declared length, or -1 without one. Responses to HEAD and 304 responses can declare one, though no body follows. */
  readonly contentLength: number;
  /** False when no body byte can follow: HEAD, 204, 304, or a length of 0. */
  readonly hasBody: boolean;
  readonly framing: Framing;
}

/**
 * The callbacks of a call: `onHead`, any number of `onData`, then `onEnd`, in this order. `onError` can come at any point
 * instead, and `onWritable` between any of them. Nothing follows `onEnd` or `onError`. There is no callback from within
 * `dispatch` or after `destroy`. While the call is paused, only `onError` and `onWritable` can come.
 *
 * Tested by test/upstream/client.test.ts and backpressure.test.ts.
 */
export interface UpstreamHandler {
  /** An interim (1xx) response other than 100 and 101; a few may come before `onHead`, and not while the call is paused. */
  onInterim?(head: ResponseHead): void;
  /** The final response head. */
  onHead(head: ResponseHead): void;
  /** A view on a buffer that all connections share: valid only until this returns. */
  onData(chunk: Buffer): void;
  /**
   * The response is complete by its own framing.
   *
   * @param trailers  flat [name, value, …], as in `ResponseHead`; empty unless the request wants them and the response has some
   */
  onEnd(trailers: readonly string[]): void;
  onError(error: UpstreamError): void;
  /** Called once after `write` returned false, when there is room again. */
  onWritable(): void;
}

/** A call, as the proxy controls it. Every method does nothing once the call is over. */
export interface UpstreamCall {
  /**
   * Sends a part of the request body, which is copied before this returns.
   * @returns false when the next part should wait for `onWritable`; this part has been taken all the same
   */
  write(chunk: Uint8Array): boolean;
  /** Says that the request body is complete. */
  end(): void;
  /** Stops `onData` and `onEnd` until `resume`. Until then the socket is not read, so the upstream has to wait. */
  pause(): void;
  resume(): void;
  readonly isPaused: boolean;
  /** Another handler gets all further callbacks. */
  handTo(handler: UpstreamHandler): void;
  /** Abandons the call: no callback follows, and the connection that carries it is closed. */
  destroy(): void;
  /** Whether at least one byte of the request was given to a socket. */
  readonly requestStarted: boolean;
  /** Whether the kernel has taken the whole request, body included. */
  readonly requestSent: boolean;
}

export type ResolvedAddress = { readonly address: string; readonly family: number };
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

export type UpstreamOptions = {
  /** Ranges that may be dialled although they are not public; for example '10.0.0.0/8'. */
  readonly allowCidrs: readonly string[];
  /** Maximum connections of one pool (see `Destination`); beyond it, calls wait in line. */
  readonly maxConnectionsPerOrigin: number;
  /**
   * Maximum connections of all pools together. Beyond it, the connection that has been idle for longest is closed for a new one; if
   * none is idle, a call that needs a new one fails as 'busy'. Accounts share them as they share those of a pool. Default: no
   * bound.
   */
  readonly maxConnections?: number;
  /** Calls of one pool that may wait for a connection; one more fails as 'busy'. */
  readonly maxWaitingPerOrigin: number;
  /** Longest wait for a connection; then the call fails as 'busy'. */
  readonly maxWaitMs: number;
  /** Longest time for name resolution, TCP and TLS together. */
  readonly connectTimeoutMs: number;
  /** Idle connections are closed after this, or one second before the upstream's own `Keep-Alive: timeout`, if that is sooner. */
  readonly keepAliveMs: number;
  /**
   * Maximum bytes of a response head and the interim responses before it together. The trailers have a bound of the same size.
   * Beyond it, a response is malformed.
   */
  readonly maxHeadBytes: number;
  /**
   * Idle connections over all pools; beyond it, the one that has been idle for longest is closed. Default: 1024, or
   * `maxConnectionsPerOrigin` if that is more.
   */
  readonly maxIdleConnections?: number;
  /** How often timeouts are checked, and so their granularity (see CoarseClock). Default 250. */
  readonly sweepIntervalMs?: number;
  /** Certificate authority to trust instead of the system's. */
  readonly tlsCa?: string | Buffer;
  /** Resolves names instead of the hosts file and the nameservers. */
  readonly lookup?: Lookup;
};

export type UpstreamStats = {
  /** Pools with at least one connection. */
  readonly origins: number;
  /** Connections in any state: the sum of the next three. */
  readonly open: number;
  readonly connecting: number;
  readonly idle: number;
  readonly active: number;
  /** Calls that wait in line for a connection. */
  readonly waiting: number;
};
