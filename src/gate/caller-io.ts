import type { AccessEntry } from '../observability/access-log.ts';

/**
 * The HTTP edge as the gate and the proxy see it. src/http implements these types.
 *
 * Tested by test/http/caller-stream.test.ts.
 */

/** The path of every call begins with this; `{service_id}` and the service's own path follow. */
export const PROXY_PREFIX = '/api/v1/proxy/';
const ADMIN_PREFIX = '/api/v1/admin/';
/** The only path on which a browser sends a credential by itself: the cookie of a session. */
const SESSION_PATH = '/api/v1/session';

/** Whether pages of other origins are denied access to this path. */
export const isClosedToPages = (path: string): boolean =>
  path.startsWith(ADMIN_PREFIX) || path.startsWith(SESSION_PATH);

/** A request head, copied from the socket in one pass and checked for framing tricks. */
export type RequestHead = {
  /** As sent. A method that is not one of the six known ones comes with a fault, except the OPTIONS of a preflight. */
  readonly method: string;
  /** Raw path, byte for byte, without the query. */
  readonly path: string;
  /** Raw query without the '?'; undefined if there was no '?'. */
  readonly query: string | undefined;
  /** Flat [name, value, …]; names in lower case. */
  readonly headers: readonly string[];
  /** Whether all header values are plain ASCII. */
  readonly isAscii: boolean;
  /**
   * The credentials that decide who the caller is: `Authorization`, or `X-Api-Key` with `Bearer ` in front. `decidingCredentials`
   * chooses.
   */
  readonly authorization: string | undefined;
  /** Declared length of the body in bytes; 0 if there is none, -1 if the body is chunked. */
  readonly bodyLength: number;
  /** What is wrong with the message itself, or null. A request with a fault must be refused. */
  readonly fault: HeadFault | null;
};

export type HeadFault = {
  readonly code: 'unsupported_framing' | 'invalid_request' | 'method_not_allowed' | 'upgrade_not_supported';
  readonly message: string;
};

/** The events that a caller's connection reports during one exchange. */
export interface CallerEvents {
  /** A piece of the request body has arrived. Its bytes are valid only until this returns. */
  onCallerBody(chunk: Uint8Array, last: boolean): void;
  /** The caller left before the response was complete. Nothing may be written after this. */
  onCallerGone(): void;
  /**
   * The request body arrives too slowly (see src/http/upload-pace.ts). Not called while the body is paused. Code that sets its own
   * time limit for a body does not need this event.
   */
  onCallerTooSlow?(): void;
  /** More can be written again, after `write` returned false. */
  onCallerWritable(): void;
}

/** The caller's connection for one exchange: the request body comes from it, the response goes to it. */
export interface CallerStream {
  /**
   * What the access log will say about the request. The code that answers the request fills it in. Undefined unless the log is on.
   */
  readonly accessEntry?: AccessEntry | undefined;
  readonly aborted: boolean;
  /** The gateway is shutting down and cuts the connection itself: the caller has not left. */
  readonly wasCut: boolean;
  /** The caller's address for rate limits. Null if it is first read after the caller has left or the response has ended. */
  readonly address: string | null;
  /**
   * Starts the events. Bytes of the body that arrived earlier are delivered now. A second call replaces the first: everything not
   * yet delivered goes to the new listener.
   */
  attach(events: CallerEvents): void;
  pauseBody(): void;
  resumeBody(): void;
  /** Sends the whole response at once. `headerLines` must be ASCII. */
  respond(status: number, headerLines: string, body: string | Uint8Array): void;
  /**
   * Sends an interim (1xx) response, unless the response has begun or part of the request has not arrived yet.
   *
   * @param headerLines  as for `begin`; at least one
   */
  interim(status: number, headerLines: string, isAscii: boolean): void;
  /**
   * Begins a streamed response. Its head is sent with the first bytes of the body, or with the end.
   *
   * @param headerLines  header lines serialised as `\r\nname: value`, in latin1, without framing headers
   * @param isAscii  whether the header lines are plain ASCII
   * @param contentLength  length of the body that the head declares, or -1 if unknown
   * @param hasBody  false for HEAD, 204 and 304: no body follows. The head still declares `contentLength`, except in a 204
   */
  begin(status: number, headerLines: string, isAscii: boolean, contentLength: number, hasBody: boolean): void;
  /**
   * Sends a piece of the response body. The chunk may be overwritten once this returns.
   *
   * @returns false if nothing more may be written until onCallerWritable
   */
  write(chunk: Uint8Array): boolean;
  /** Ends the response cleanly. */
  end(): void;
  /** Cuts the connection, so that the caller can tell that the response is incomplete. */
  abort(): void;
}
