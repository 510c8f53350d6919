import type { CallerBody } from './caller-body.ts';
import type { HttpResponse } from './uws.ts';
import { headOf } from './uws-response.ts';

/**
 * How a response closes its connection. The *writer* is its ResponseWriter.
 *
 * A response has to close its connection, and announces that by `connection: close`,
 *
 * - after a chunked request, or one with a fault: the addon parses leniently, so it might be wrong about where this request ends
 *   and the next one starts;
 * - while the server drains;
 * - when it begins before its request is whole. The addon clears the connection's timeout when the last bytes of a request arrive.
 *   If they arrived after the response, the response's handle would no longer be valid, and nobody could set the timeout again.
 *   For the price of one call, a caller would get a connection that stays open for ever;
 * - by chance, if it has no body (unread.ts says why).
 *
 * The connection is closed in three steps:
 *
 * 1. The last bytes of the response are kept back until the operating system has taken all bytes before them (KeptBack). Otherwise
 *    the addon might still buffer some of them when the connection is closed, and drop them.
 * 2. The rest of the request, if any, is read and dropped (CallerBody.drop).
 * 3. The connection is closed before the addon serves another request on it. The addon would do so once the response is complete:
 *
 *    | body           | closed by                                                                                              |
 *    |----------------|--------------------------------------------------------------------------------------------------------|
 *    | known length   | the writer. The addon is told one byte more than there are, so the response is never complete          |
 *    | one byte       | the addon, when it has sent the byte. No byte goes before it that step 1 could wait for                |
 *    | none           | the writer. The addon gets the head and never the end, so the response is never complete               |
 *    | unknown length | the writer, through a second handle. Only end() sends the last chunk, and that completes the response  |
 */

/** Performs step 2, then calls `then`, which performs step 3. */
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
 * Sends the head of a response without a body, and leaves the response open. When a response has a body, the addon can close the
 * connection after it, but not when it has none. So this response never ends; the writer closes its connection instead.
 */
export function sendClosingHead(response: HttpResponse, status: number, headerLines: string, isAscii: boolean): void {
  // The addon writes CRLF after a status line. Together with the CRLF at the end of `closing`, it makes the empty line that ends
  // the head. `date` is written here, because the addon adds it only when a response ends.
  const closing = `\r\ndate: ${new Date().toUTCString()}\r\nconnection: close\r\n`;
  const head = headOf(status, headerLines + closing, isAscii);
  response.cork(() => {
    response.writeStatus(head);
  });
}

/**
 * Sends the last chunk, which ends the response, and closes the connection if there is a second handle. Without a second handle,
 * only the addon's timeout closes it, 10 s after the end. Until then the gateway no longer reads from it: the next request would
 * be served, and the last bytes of this one would clear the timeout.
 *
 * @param secondHandle  null if the response leaves its connection open, or the server has no second handle (see HttpServer)
 * @param closes  whether the response has announced that its connection ends
 */
export function endChunks(response: HttpResponse, secondHandle: HttpResponse | null, closes: boolean): void {
  if (secondHandle === null && closes) response.pause();
  // The addon's end() could close the connection too, but it would write `connection: close` into the body.
  response.cork(() => response.end());
  // Closed in the same turn, before the addon can read the next request from the connection and serve it.
  secondHandle?.close();
}
