import type { UwsCallerStream } from './caller-stream.ts';

/** The server, as each of its streams sees it. */
export interface StreamOwner {
  /** The server is draining: responses must say `Connection: close`. */
  readonly draining: boolean;
  /** The server is closing: it cuts every connection. */
  readonly closing: boolean;
  /** How many proxies in front of the gateway are trusted to write `X-Forwarded-For`. */
  readonly trustedProxyHops: number;
  /** Maximum bytes of a request that are read and dropped after its response. */
  readonly maxRequestBodyBytes: number;
  /** Tells the server that the stream has ended: the response was sent to the last byte or cut, or the caller left. */
  onFinished(stream: UwsCallerStream): void;
}
