/**
 * One thing a hostile caller says, and what may come of it. Octets are latin1. In the wire stand
 *   {path}  the case's own path at a priced service        {auth}  the header line of a key with money
 *   {evil}  a path at the same service that the caller never asked for in a way both ends must agree on
 *   {evil-length}  the length of EVIL_BODY once its path is in it
 */
export type CallerCase = {
  readonly name: string;
  /** Several pieces are sent one after the other, each once the one before has been read. */
  readonly wire: string | readonly string[];
  /** What follows the request: in one run at once, in another when it was answered. */
  readonly rest?: string;
  /** The answer to it has no body, whatever its head declares. */
  readonly isHead?: true;
  /** Each octet by itself. */
  readonly drip?: true;
  readonly allowed: Allowed;
};

/** What may be seen, each by itself sufficient. Whatever it is: at most one request for `{path}`, none for `{evil}`. */
export type Allowed = {
  /** Answered so and closed; nothing reaches the service. */
  readonly refused?: readonly number[];
  /** Answered so; nothing reaches the service; the connection is closed, or its next request is read right. */
  readonly answered?: readonly number[];
  /** Closed without a word; nothing reaches the service. */
  readonly closed?: true;
  /** The service sees `{path}` and this, once and whole; the connection is closed, or its next request is read right. */
  readonly served?: { readonly suffix?: string; readonly method?: string; readonly body?: string };
  /** The request may reach the service, once, whole or not; the caller's connection is closed without a clean answer. */
  readonly cut?: true;
  /**
   * The addon's parser takes this for in order, and shows us nothing of it (README, 'Limits'): the service may see one whole
   * request, whatever its body, if the connection ends with it. A newer addon may refuse it.
   */
  readonly lenient?: true;
  /** Not a whole request: nothing reaches the service but what was said so far, and the gateway waits. */
  readonly waits?: true;
  /** Beside `served`: octets too many stand before the next request on the connection, which is refused for them. */
  readonly surplus?: true;
  /** A second request that both ends agree on (pipelining): it may be taken as its own call, or not at all. */
  readonly second?: true;
};

/** `POST {path}` with these header lines. */
export const post = (lines: string, body = ''): string =>
  `POST {path} HTTP/1.1\r\nHost: gateway.test\r\n{auth}${lines}\r\n\r\n${body}`;

/** A case of `post` with HEAD: an answer without a body ends by other means. */
export const asHead = ({ name, wire, ...rest }: CallerCase): CallerCase => ({
  ...rest,
  name: `HEAD: ${name}`,
  wire: (typeof wire === 'string' ? [wire] : wire).map((piece) => piece.replace(/^POST /, 'HEAD ')),
  isHead: true,
});

export const get = (lines: string): string => `GET {path} HTTP/1.1\r\nHost: gateway.test\r\n{auth}${lines}`;

/** Behind a path: the service answers in chunks. */
export const IN_CHUNKS = 'in-chunks';

/** What a smuggler would like to be read as a request of its own. */
export const EVIL = 'GET {evil} HTTP/1.1\r\nHost: gateway.test\r\n{auth}\r\n';

/** The same as the body of a request that is in order. */
export const EVIL_BODY = 'GET {evil} HTTP/1.1\r\nHost: gateway.test\r\n\r\n';
