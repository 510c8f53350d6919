import type { CallerBody } from './caller-body.ts';
import type { HttpResponse } from './uws.ts';
import { headOf } from './uws-response.ts';

/**
 * How a response closes its connection.
 *
 * A response has to close its connection, and announces that by `connection: close`,
 *
 * - after a chunked request, or one with a fault: the addon parses leniently, and that must not decide where the next request
 *   starts;
 * - while the server drains;
 * - when it begins before its request is whole. The addon clears the connection's timeout when the last bytes of a request arrive.
 *   If they arrived after the response, when its handle is no longer valid, nothing would set a timeout again: callers could
 *   collect open connections for one call each;
 * - by chance, if it has no body (unread.ts).
 *
 * It is closed in three steps:
 *
 * 1. The last bytes of the response are kept back until the operating system has taken all bytes before them (KeptBack). The addon
 *    drops what it still buffers when a connection is closed.
 * 2. The rest of the request, if any, is read and dropped (CallerBody.drop).
 * 3. The connection is closed before the addon serves another request on it, which it does once a response is complete:
 *
 *    | body           | closed by                                                                                              |
 *    |----------------|--------------------------------------------------------------------------------------------------------|
 *    | known length   | the stream. The addon is told one byte more than there are, so the response is never complete          |
 *    | one byte       | the addon, when it has sent the byte. No byte goes before it that step 1 could wait for                |
 *    | none           | the stream. The addon gets the head and never the end, so the response is never complete               |
 *    | unknown length | the stream, through a second handle. Only end() sends the last chunk, and that completes the response  |
 */

/** Step 2, after which `then` performs step 3. */
export function afterRest(body: CallerBody | null, maxBytes: number, then: () => void): void {
  if (body === null || body.isDone) then();
  else body.drop(maxBytes, then);
}

/** Sends a response of one byte. The addon adds `connection: close`, and closes the connection as soon as the byte is sent. */
export function sendByteAndClose(response: HttpResponse, head: string | Uint8Array, byte: Uint8Array): void {
  response.cork(() => {
    response.writeStatus(head);
    response.end(byte, true);
  });
}

/**
 * Sends the head of a response without a body, and leaves the response open. The addon can close the connection behind a response
 * with a body, but not behind one without. So this response never ends; its connection is closed instead.
 */
export function sendClosingHead(response: HttpResponse, status: number, headerLines: string, isAscii: boolean): void {
  // The addon writes CRLF after a status line. Behind the last CRLF here, that is the empty line at the end of the head.
  // The addon adds `date` only when a response ends.
  const closing = `\r\ndate: ${new Date().toUTCString()}\r\nconnection: close\r\n`;
  const head = headOf(status, headerLines + closing, isAscii);
  response.cork(() => {
    response.writeStatus(head);
  });
}

/**
 * Sends the last chunk, which ends the response, and closes the connection if there is a second handle. Without one, only the
 * addon's timeout closes it, 10 s after the end. The last bytes of the request would clear that timeout, so the gateway does not
 * read them.
 *
 * @param secondHandle  null if the response keeps its connection open, or the server has no second handle (see HttpServer)
 * @param awaitsBody  whether some of the request has not arrived yet
 */
export function endChunks(response: HttpResponse, secondHandle: HttpResponse | null, awaitsBody: boolean): void {
  if (secondHandle === null && awaitsBody) response.pause();
  // The addon's end() could close the connection too, but it would write `connection: close` into the body.
  response.cork(() => response.end());
  // In the same turn, before the addon reads the next request from the connection and serves it.
  secondHandle?.close();
}
