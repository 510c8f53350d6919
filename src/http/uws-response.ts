import { statusLine } from './status.ts';
import type { HttpResponse, RecognizedString } from './uws.ts';

/**
 * How ResponseWriter writes a response with uWebSockets.js ("the addon"). A response that closes its connection also needs
 * close-connection.ts and KeptBack.
 *
 * The addon sends a head only together with the first bytes of the body or with the end. A function that may be the first to
 * send something therefore takes the head, or null if the head has been sent.
 *
 * All writes are corked: the addon collects what is written within cork() in a buffer of 16 KiB, and hands it to the operating
 * system when cork() returns. In a callback from the addon, it waits until the callback returns.
 *
 * Tested by test/http/caller-stream.test.ts, close-connection.test.ts and unread.test.ts.
 */

/** Status line and header lines. */
export type Head = string | Uint8Array;

/**
 * Maximum bytes of a chunked write in one cork; a longer chunk goes out in several corks. The legacy addon can drop bytes if a
 * corked write is larger than what is left of its 16 KiB cork buffer and the socket is full.
 */
const MAX_CORKED_WRITE = 15_900;
const NOTHING_SENT: [boolean, boolean] = [false, false];
const CRLF = Buffer.from('\r\n');
const noop = (): void => {};

/**
 * The whole head, in the form of one long status line. A response has a dozen headers, and each call into the addon costs about
 * 0.2 µs, so all go in one call. The addon writes text as UTF-8, so a head that is not ASCII goes out as bytes.
 */
export function headOf(status: number, headerLines: string, isAscii: boolean): Head {
  const head = statusLine(status) + headerLines;
  return isAscii ? head : Buffer.from(head, 'latin1');
}

const HTTP_VERSION = Buffer.from('HTTP/1.1 ');

/**
 * Sends an interim response. The addon does not support them: it writes one status line per response, and ignores all later ones.
 * But it writes the names and values of headers unchanged. So from now on each head of this response goes out as one header, whose
 * name begins with the status line.
 *
 * Callers can be sent interim responses because the addon refuses HTTP/1.0, which has none (RFC 9110 §15.2).
 *
 * @param head  with at least one header line
 */
export function sendInterim(response: HttpResponse, head: Head): void {
  response.cork(() => {
    response.writeStatus(withEmptyLine(head));
  });
  response.writeStatus = writeLaterHead;
}

/** The addon writes CRLF after a head; one more makes the empty line that ends it. */
function withEmptyLine(head: Head): Head {
  return typeof head === 'string' ? `${head}\r\n` : Buffer.concat([head, CRLF]);
}

/** Replaces the addon's `writeStatus` on a response that has had an interim response. */
function writeLaterHead(this: HttpResponse, head: RecognizedString): HttpResponse {
  const bytes = Buffer.from(head as Head);
  const colon = bytes.indexOf(': ');
  return this.writeHeader(Buffer.concat([HTTP_VERSION, bytes.subarray(0, colon)]), bytes.subarray(colon + 2));
}

/** Sends a whole response. The addon does not say whether the socket has taken it. */
export function sendWhole(response: HttpResponse, head: Head, body: string | Uint8Array): void {
  response.cork(() => {
    response.writeStatus(head);
    response.end(body);
  });
}

/**
 * Sends a whole response without a body. A length that it declares must be among the header lines, because the legacy addon's
 * endWithoutBody() works only without arguments: given a length, it waits for that many bytes for ever; given `undefined`, it
 * declares 2^63.
 */
export function sendWithoutBody(response: HttpResponse, head: Head): void {
  response.cork(() => {
    response.writeStatus(head);
    response.endWithoutBody();
  });
}

/**
 * Sends a piece of a body of known length. The piece must not be empty: the current addon treats an empty tryEnd() as the end of
 * the response.
 *
 * @param length  the head declares the length given in the first call; the response is complete when as many bytes have been sent
 *   as the latest call gives
 * @returns whether the socket took the whole piece, and whether the response is complete
 */
export function sendWithLength(
  response: HttpResponse,
  head: Head | null,
  piece: Uint8Array,
  length: number,
): [ok: boolean, done: boolean] {
  let result: [boolean, boolean] = NOTHING_SENT;
  response.cork(() => {
    if (head !== null) response.writeStatus(head);
    result = response.tryEnd(piece, length);
  });
  return result;
}

/**
 * Sends bytes of a body of unknown length, as one or more chunks. Stops after the first chunk whose write reports a full
 * socket.
 *
 * @returns -1 if every write reported success (the addon may still buffer some bytes: see `flush`). Otherwise n: the addon
 * took the first n bytes, and itself buffers what the socket did not take of them. The caller has to send the bytes after
 * these n, if any, later
 */
export function sendChunks(response: HttpResponse, head: Head | null, bytes: Uint8Array): number {
  for (let from = 0; from < bytes.length; from += MAX_CORKED_WRITE) {
    const piece = bytes.length <= MAX_CORKED_WRITE ? bytes : bytes.subarray(from, from + MAX_CORKED_WRITE);
    const firstHead = from === 0 ? head : null;
    let ok = false;
    response.cork(() => {
      if (firstHead !== null) response.writeStatus(firstHead);
      ok = response.write(piece);
    });
    if (!ok) return from + piece.length;
  }
  return -1;
}

/**
 * Makes the addon send what it still buffers, by an empty cork. The addon does not do that by itself once a response has a
 * handler for onWritable. It may also buffer bytes of a write that reported success: they fitted into the cork's buffer, and
 * found the socket full only when the cork ended.
 */
export function flush(response: HttpResponse): void {
  response.cork(noop);
}

/**
 * Restarts the addon's timeout for this connection, which is 10 s, give or take 4.
 *
 * The addon's resume() restarts it. But resume() also makes a paused socket listen to the events that the last pause() found,
 * even if that pause() was on another socket. So a socket that is not paused is paused just before. Otherwise it could get wrong
 * events, and a stalled reader would hang for ever. A socket that is paused waits only for its request body (see pauseBody()),
 * and is paused again at once.
 *
 * @param isPaused  whether the socket is paused now; it stays so
 */
export function renewTimeout(response: HttpResponse, isPaused: boolean): void {
  if (!isPaused) response.pause();
  response.resume();
  if (isPaused) response.pause();
}
