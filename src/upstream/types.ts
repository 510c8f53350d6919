import type { Destination } from './destination.ts';
import type { UpstreamError } from './upstream-error.ts';

/** One request, ready to be written: nothing in it is checked again except `path`. */
export type UpstreamRequest = {
  readonly destination: Destination;
  /** GET, HEAD, POST, PUT, PATCH or DELETE. */
  readonly method: string;
  /** Path and query as they go on the wire, starting with '/'. */
  readonly path: string;
  /**
   * `name: value\r\n…`, serialised and validated by the caller: every character at most U+00FF (latin1 keeps only the
   * low byte, so U+010A would become a line feed), no Host, no framing or connection headers. Those are ours.
   */
  readonly headerLines: string;
  /** 0: none. n: exactly n bytes, Content-Length. -1: unknown, chunked. */
  readonly bodyLength: number;
  /** Longest silence between the end of the request and the response head; also the longest upload without progress. */
  readonly headTimeoutMs: number;
  /** Longest silence within the response body. Does not run while the call is paused. */
  readonly idleBodyTimeoutMs: number;
};

export interface ResponseHead {
  readonly status: number;
  /** Flat [name, value, …]; names as sent, values without surrounding whitespace, latin1. */
  readonly headers: string[];
  /** No header value has octets beyond ASCII (obs-text, RFC 9110 §5.5). */
  readonly isAscii: boolean;
  /** -1 when not declared. Of a HEAD or 304 response: what was declared, though no body follows. */
  readonly contentLength: number;
  /** False when no body byte can follow: HEAD, 204, 304, or a length of 0. */
  readonly hasBody: boolean;
}

/**
 * What happens to a call, in order: `onHead`, any number of `onData`, then `onEnd`; or `onError` at any point. `onEnd` and
 * `onError` are last. Nothing is called from within `dispatch`, after `destroy`, or, except `onError` and `onWritable`,
 * while paused.
 */
export interface UpstreamHandler {
  /** The final response head. Interim (1xx) responses are not reported. */
  onHead(head: ResponseHead): void;
  /** A view on a buffer shared by all connections: valid only until this returns. */
  onData(chunk: Buffer): void;
  /** The response is complete by its own framing. */
  onEnd(): void;
  onError(error: UpstreamError): void;
  /** After `write` returned false: there is room again. */
  onWritable(): void;
}

/** The caller's end of one exchange. Every method is a no-op once the exchange is over. */
export interface UpstreamCall {
  /**
   * A part of the request body; it is copied before this returns.
   * @returns false when the caller should wait for `onWritable` (the chunk has been taken all the same).
   */
  write(chunk: Uint8Array): boolean;
  /** The request body is complete. */
  end(): void;
  /** No `onData` and no `onEnd` from now on; the socket is not read. */
  pause(): void;
  resume(): void;
  /** The caller gave up: no callback afterwards. The connection is closed unless the exchange was over. */
  destroy(): void;
  /** At least one byte of the request was given to a socket. */
  readonly requestStarted: boolean;
  /** The whole request, body included, has left for the kernel. */
  readonly requestSent: boolean;
}

export type ResolvedAddress = { readonly address: string; readonly family: number };
export type Lookup = (hostname: string) => Promise<readonly ResolvedAddress[]>;

export type UpstreamOptions = {
  /** Ranges that may be dialled although they are not public, for example '10.0.0.0/8'. */
  readonly allowCidrs: readonly string[];
  /** Of one pool (see `Destination`). So is the next. */
  readonly maxConnectionsPerOrigin: number;
  /** Calls that may wait for a connection to an origin; one more is 'busy'. */
  readonly maxWaitingPerOrigin: number;
  readonly maxWaitMs: number;
  /** For name, TCP and TLS together. */
  readonly connectTimeoutMs: number;
  /** Unused connections are closed after this, or a second before the upstream's own `Keep-Alive: timeout`. */
  readonly keepAliveMs: number;
  /** Bound on a response head, interim responses before it included, and on trailers. */
  readonly maxHeadBytes: number;
  /** Unused connections over all origins; beyond it the one unused for longest is closed. Default 1024, or more: `maxConnectionsPerOrigin`. */
  readonly maxIdleConnections?: number;
  /** Granularity of every timeout; see CoarseClock. Default 250. */
  readonly sweepIntervalMs?: number;
  /** Certificate authority in place of the system's. */
  readonly tlsCa?: string | Buffer;
  /** Replaces the hosts file and the nameservers. */
  readonly lookup?: Lookup;
};

export type UpstreamStats = {
  readonly origins: number;
  /** Connections in any state; the sum of the next three. */
  readonly open: number;
  readonly connecting: number;
  readonly idle: number;
  readonly active: number;
  readonly waiting: number;
};
