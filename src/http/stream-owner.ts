import type { UwsCallerStream } from './caller-stream.ts';

/** What the server is told about every response. */
export interface StreamOwner {
  /** Draining: responses should say `Connection: close`. */
  readonly draining: boolean;
  /** Every connection is being cut. */
  readonly closing: boolean;
  /** Proxies in front whose `X-Forwarded-For` is believed. */
  readonly trustedProxyHops: number;
  /** Bytes of a request that are still read once its response is sent. */
  readonly maxRequestBodyBytes: number;
  /** The exchange is over for the server: answered to the last byte, cut, or left by the caller. */
  onFinished(stream: UwsCallerStream): void;
}
