/**
 * What a hostile caller sends, and which outcomes are allowed. Strings are latin1 bytes. Placeholders in them:
 *   {path}  the case's own path at a priced service        {auth}  the header line of a key with money
 *   {evil}  a path at the same service that only a smuggled request asks for or, with `second`, a pipelined one
 *   {evil-length}  the length of EVIL_BODY, with the path in place of its own {evil}
 */
export type CallerCase = {
  readonly name: string;
  /** Several pieces are sent one after the other, each in a turn of its own. */
  readonly wire: string | readonly string[];
  /** Sent after the request: in one test at once, in another only when the request was answered. */
  readonly rest?: string;
  /** The answer has no body, whatever its head declares. */
  readonly isHead?: true;
  /** Each byte is sent by itself. */
  readonly drip?: true;
  readonly allowed: Allowed;
};

/**
 * The allowed outcomes; any one of them is enough. Whichever it is, the service sees at most one request for `{path}` and, unless
 * `second`, none for `{evil}`.
 */
export type Allowed = {
  /** The answer has one of these statuses and the connection is closed; nothing reaches the service. */
  readonly refused?: readonly number[];
  /** The answer has one of these statuses; nothing reaches the service; the connection is closed, or its next request works. */
  readonly answered?: readonly number[];
  /** The connection is closed without an answer; nothing reaches the service. */
  readonly closed?: true;
  /** The service sees one whole request for `{path}`, of this form; the connection is closed, or its next request works. */
  readonly served?: { readonly suffix?: string; readonly method?: string; readonly body?: string };
  /** The request may reach the service, once, whole or not; the caller's connection is closed without a clean answer. */
  readonly cut?: true;
  /**
   * The addon's parser accepts this fault and hides it from us (docs/operating.md, 'Limits of the HTTP edge'): the service may
   * see one whole request, with any body, if the connection ends after it. A newer addon may refuse it.
   */
  readonly lenient?: true;
  /** This is not a whole request: the gateway waits for the rest, and no whole request reaches the service. */
  readonly waits?: true;
  /** Together with `served`: surplus bytes precede the next request on the connection, which may be refused because of them. */
  readonly surplus?: true;
  /** `rest` is a proper second request (pipelining), which may be served as its own call or not at all. */
  readonly second?: true;
};

/** `POST {path}` with these header lines. */
export const post = (lines: string, body = ''): string =>
  `POST {path} HTTP/1.1\r\nHost: gateway.test\r\n{auth}${lines}\r\n\r\n${body}`;

/** The same case with HEAD, because the gateway ends an answer without a body in another way. */
export const asHead = ({ name, wire, ...rest }: CallerCase): CallerCase => ({
  ...rest,
  name: `HEAD: ${name}`,
  wire: (typeof wire === 'string' ? [wire] : wire).map((piece) => piece.replace(/^POST /, 'HEAD ')),
  isHead: true,
});

export const get = (lines: string): string => `GET {path} HTTP/1.1\r\nHost: gateway.test\r\n{auth}${lines}`;

/** The service answers in chunks if the path ends with this. */
export const IN_CHUNKS = 'in-chunks';

/** What a smuggler wants the gateway or the service to read as a request of its own. */
export const EVIL = 'GET {evil} HTTP/1.1\r\nHost: gateway.test\r\n{auth}\r\n';

/** The same, as the body of a proper request. */
export const EVIL_BODY = 'GET {evil} HTTP/1.1\r\nHost: gateway.test\r\n\r\n';
