/** What the gate and the proxy need of the HTTP edge, which implements it (src/http). */

/** What the path of a call begins with; `{service_id}` and the service's own path follow. */
export const PROXY_PREFIX = '/api/v1/proxy/';

/** A request head, copied from the socket in one pass and checked for framing tricks. */
export type RequestHead = {
  /** As sent; only known methods get this far without a fault. */
  readonly method: string;
  /** Raw path, byte for byte, without the query. */
  readonly path: string;
  /** Raw query without the '?'; undefined when there was no '?'. */
  readonly query: string | undefined;
  /** Flat [name, value, …]; names in lower case. */
  readonly headers: readonly string[];
  /** No header value has characters beyond ASCII. */
  readonly isAscii: boolean;
  /** What says who the caller is, in the form of that header: it may have come as `X-Api-Key`. */
  readonly authorization: string | undefined;
  /** Declared length of the body; 0 when there is none, -1 when chunked. */
  readonly bodyLength: number;
  /** What is wrong with the message itself; nothing of it may be acted upon. */
  readonly fault: HeadFault | null;
};

export type HeadFault = {
  readonly code: 'unsupported_framing' | 'invalid_request' | 'method_not_allowed' | 'upgrade_not_supported';
  readonly message: string;
};

/** Events of the caller's side of an exchange. */
export interface CallerEvents {
  /** A piece of the request body. The bytes are gone when this returns. */
  onCallerBody(chunk: Uint8Array, last: boolean): void;
  /** The caller went away before the response was complete. Nothing may be written any more. */
  onCallerGone(): void;
  /** After `write` returned false: room again. */
  onCallerWritable(): void;
}

/** The caller's connection for one exchange: the request body comes from it, the response goes to it. */
export interface CallerStream {
  readonly aborted: boolean;
  /** The gateway shuts down and cuts its callers off: they have not left. */
  readonly wasCut: boolean;
  /** The address rate limits count by; null: the caller left before anybody asked for it. */
  readonly address: string | null;
  /** Starts the events. Body that arrived before is not lost: it is asked for only now. */
  attach(events: CallerEvents): void;
  pauseBody(): void;
  resumeBody(): void;
  /** The whole response at once; its header lines are ASCII. */
  respond(status: number, headerLines: string, body: string | Uint8Array): void;
  /**
   * The head of a streamed response, sent with the first bytes of the body, or its end.
   *
   * @param headerLines  serialised `\r\nname: value`, one after the other, latin1, without framing headers
   * @param isAscii  nothing in them is beyond ASCII
   * @param contentLength  bytes that will follow, or -1 when unknown
   * @param hasBody  false for HEAD, 204 and 304: then `contentLength` is only what is declared
   */
  begin(status: number, headerLines: string, isAscii: boolean, contentLength: number, hasBody: boolean): void;
  /** A piece of the response body; may be overwritten once this returns. False: pause until onCallerWritable. */
  write(chunk: Uint8Array): boolean;
  /** The clean end of the response. */
  end(): void;
  /** Cuts the connection, so that the caller sees an incomplete response for what it is. */
  abort(): void;
}
