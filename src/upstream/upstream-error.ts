/** What went wrong. The proxy maps each code to an error response; the failure table in docs/design.md says what is charged. */
export type UpstreamErrorCode =
  | 'address_forbidden' // the endpoint's address is neither on the public internet nor allowed by the operator
  | 'dns_failed'
  | 'dns_timeout' // no nameserver answered in time; it may be the provider's or the gateway's
  | 'connect_failed'
  | 'connect_timeout' // the name was resolved, but name, TCP and TLS together took too long
  | 'tls_expired' // the certificate is not valid at this time
  | 'tls_wrong_name' // it is for another name
  | 'tls_untrusted' // nobody whom the gateway trusts has signed it, or the server does not send who has
  | 'tls_failed' // the handshake broke for another reason
  | 'reset' // the connection ended before the response did
  | 'head_timeout'
  | 'body_timeout'
  | 'malformed_response'
  | 'busy'; // the line for a connection was full or too slow, too many names are being looked up, or the gateway stops

/** What failed, without the call that it concerns; `UpstreamError` adds how far that call had come. */
export type Failure = { readonly code: UpstreamErrorCode; readonly message: string; readonly cause?: unknown };

export class UpstreamError extends Error {
  override readonly name = 'UpstreamError';
  readonly code: UpstreamErrorCode;
  /** Whether `onHead` had been called: the caller's response may have begun. */
  readonly headReceived: boolean;
  /** Whether at least one byte of the request was given to a socket: the upstream may have acted on it. */
  readonly requestStarted: boolean;

  constructor(failure: Failure, headReceived: boolean, requestStarted: boolean) {
    super(failure.message, failure.cause === undefined ? undefined : { cause: failure.cause });
    this.code = failure.code;
    this.headReceived = headReceived;
    this.requestStarted = requestStarted;
  }
}

/** A listing's endpoint URL cannot be used. The message says what is wrong with the URL. */
export class EndpointError extends Error {
  override readonly name = 'EndpointError';
}

/**
 * A handler that throws is a programming error. Its call is given up, and the exception is thrown again in a microtask, to reach
 * the process as 'uncaughtException'. If it went on through a socket's event, it could leave other calls in a broken state.
 */
export function surface(error: unknown): void {
  queueMicrotask(() => {
    throw error;
  });
}
