/** What went wrong, as the proxy maps it to an answer. DESIGN.md's failure table has the money side. */
export type UpstreamErrorCode =
  | 'address_forbidden' // the endpoint's name or address is not on the public internet, nor allowed
  | 'dns_failed'
  | 'dns_timeout' // no nameserver answered in time: theirs, or ours
  | 'connect_failed'
  | 'connect_timeout' // the name was resolved, but all together took too long
  | 'tls_failed' // certificate refused, or the handshake broke
  | 'reset' // the connection ended before the response did
  | 'head_timeout'
  | 'body_timeout'
  | 'malformed_response'
  | 'busy'; // every connection taken and the wait queue full or too slow

/** A failure before it is tied to a call. */
export type Failure = { readonly code: UpstreamErrorCode; readonly message: string; readonly cause?: unknown };

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: UpstreamErrorCode;
  /** The final response head had been delivered: the caller's response is already under way. */
  readonly headReceived: boolean;
  /** At least one byte of the request was given to a socket: the upstream may have acted on it. */
  readonly requestStarted: boolean;

  constructor(failure: Failure, headReceived: boolean, requestStarted: boolean) {
    super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.code = failure.code;
    this.headReceived = headReceived;
    this.requestStarted = requestStarted;
  }
}

/** A listing's endpoint URL that cannot be used; the message is meant for the provider who wrote it. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
}

/**
 * A handler that throws is a programmer's error. The exchange is abandoned and the exception goes to the process
 * ('uncaughtException'), not into a socket's event, where it would take unrelated calls with it.
 */
export function surface(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
