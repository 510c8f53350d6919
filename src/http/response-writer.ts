import { assert } from '../assert.ts';
import { endChunks, sendByteAndClose, sendClosingHead } from './close-connection.ts';
import { KeptBack } from './kept-back.ts';
import { closesByChance, isChecked } from './unread.ts';
import type { HttpResponse } from './uws.ts';
import { flush, headOf, sendChunks, sendInterim, sendWhole, sendWithLength, sendWithoutBody } from './uws-response.ts';

/**
 * Maximum characters of header lines of all interim responses before one response; further ones are dropped. The addon does not say
 * whether the caller reads them, and buffers those that it does not read. A response after interim ones is therefore sent in a way
 * that shows whether the caller reads (unread.ts), or closes its connection.
 */
const MAX_INTERIM_LENGTH = 8_192;

/** What a response needs from the stream on which it is sent. */
export interface ResponseOwner {
  /**
   * Whether a response that began now would have to close its connection, for one of the reasons in close-connection.ts except
   * chance.
   */
  mustClose(): boolean;
  /** @param then  closes the connection, when the rest of the request has been read and dropped */
  afterRest(then: () => void): void;
  /** Bytes may be written again after `write` returned false. */
  onWritable(): void;
  /** The response was sent to the last byte, or its connection was cut. */
  onFinished(): void;
}

/**
 * One response on uWebSockets.js ("the addon").
 *
 *          begin()                first bytes             end()             all is sent
 *   open ──────────► head pending ────────────► streaming ───────► ending ─────────────► finished
 *     │                    └───── end(), without a body ────────────────────────────────────►│
 *     └──────────────────── respond() ──────────────────────────────────────────────────────►┘
 *   streaming, ending:   the socket is full ──► stalled ──► the addon calls onWritable
 *   all but finished:    the caller leaves ──► finished;  abort() cuts the connection ──► finished
 *
 * **The body.** A small body that is written in one piece goes out by the addon's end() (unread.ts). Any other body of known
 * length goes out by the addon's tryEnd(), and its last byte finishes the response, even before our end(). A body of unknown
 * length goes out by the addon's write(). No response uses both tryEnd() and write().
 *
 * **A stalled reader.** When the socket is full, write() returns false and the response is *stalled* until the addon reports the
 * socket writable. The writer copies the bytes that neither the socket nor the addon took. That is at most one piece, because
 * nothing may be written until onWritable; the call pauses the service until then.
 *
 * **Closing.** Some responses close their connection once all of the response has been sent: close-connection.ts says which, and how.
 *
 * Tested by test/http/caller-stream.test.ts, close-connection.test.ts and unread.test.ts.
 */
export class ResponseWriter {
  readonly #response: HttpResponse;
  readonly #owner: ResponseOwner;
  /**
   * A second handle of the same connection, or null. `#response` is no longer valid when the response has ended; the second handle
   * can still close the connection then. The server has one only for chunked requests and during a drain.
   */
  readonly #secondHandle: HttpResponse | null;
  /** Everything has been sent, abort() has cut the connection, or the caller has left. Nothing may be written any more. */
  isFinished = false;
  /** respond() or end() has been called, but the socket may not have taken the whole response yet. */
  isEnding = false;
  /** The socket is full: nothing may be written until the addon calls onWritable. */
  isStalled = false;
  /** Bytes have been written, or the socket has taken some. Each tick of the stream resets this. */
  hasMoved = false;
  /** Length of the interim responses that were sent; see MAX_INTERIM_LENGTH. */
  #interimLength = 0;
  /** begin() was called, and the head has not been sent yet. */
  #headPending = false;
  /** Status of the response; 0 until it begins. */
  #status = 0;
  #headerLines = '';
  #isAscii = true;
  /** Length of the response's body in bytes; -1 if unknown. */
  #contentLength = -1;
  #hasBody = true;
  /** Whether the response closes its connection. Does not change any more once the head has been sent. */
  #closes = false;
  /** The bytes kept back at the end of a response that closes its connection (KeptBack says why); null until there are any. */
  #kept: KeptBack | null = null;
  /** Body bytes that neither the socket nor the addon has taken yet. */
  #unsent: Uint8Array | null = null;
  /** onWritable() has been called on the addon. One handler serves the whole response. */
  #watching = false;

  constructor(response: HttpResponse, owner: ResponseOwner, secondHandle: HttpResponse | null) {
    this.#response = response;
    this.#owner = owner;
    this.#secondHandle = secondHandle;
  }

  /** Whether the final response has begun. */
  get hasBegun(): boolean {
    return this.#status !== 0;
  }

  /** @param isHead  whether the request is HEAD */
  respond(status: number, headerLines: string, body: string | Uint8Array, isHead: boolean): void {
    if (this.isFinished) return;
    assert(!this.#headPending && this.#status === 0, 'respond() after begin()');
    const closes = this.#owner.mustClose();
    const { length } = body;
    if (status === 204 || status === 304) {
      // RFC 9110 §8.6: a 204 declares no length, and a 304 none or that of the representation, which is not known here.
      this.#endWithoutBody(status, headerLines, -1, closes);
    } else if (length === 0 || isHead) {
      this.#endWithoutBody(status, headerLines, Buffer.byteLength(body), closes);
    } else if (closes || this.#interimLength > 0 || isChecked(length + headerLines.length)) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      this.begin(status, headerLines, true, bytes.length, true);
      this.isEnding = true;
      this.#writeKnown(bytes, closes);
    } else {
      this.#endWhole(status, headerLines, body);
    }
  }

  interim(status: number, headerLines: string, isAscii: boolean): void {
    if (this.isFinished || this.#status !== 0) return;
    if (this.#interimLength + headerLines.length > MAX_INTERIM_LENGTH) return;
    this.#interimLength += headerLines.length;
    sendInterim(this.#response, headOf(status, headerLines, isAscii));
  }

  begin(status: number, headerLines: string, isAscii: boolean, contentLength: number, hasBody: boolean): void {
    if (this.isFinished) return;
    assert(!this.#headPending && this.#status === 0, 'begin() twice');
    this.#status = status;
    this.#headerLines = headerLines;
    this.#isAscii = isAscii;
    this.#hasBody = hasBody;
    this.#contentLength = contentLength;
    this.#headPending = true;
  }

  write(chunk: Uint8Array): boolean {
    if (this.isFinished) return true;
    this.hasMoved = true;
    assert(this.#status !== 0 && this.#hasBody && !this.isEnding && this.#unsent === null, 'write() out of order');
    if (this.#contentLength < 0) return this.#writeChunked(chunk);
    if (
      this.#headPending &&
      chunk.length === this.#contentLength &&
      !this.#owner.mustClose() &&
      this.#interimLength === 0 &&
      !isChecked(chunk.length + this.#headerLines.length)
    ) {
      this.#endWhole(this.#status, this.#headerLines, chunk);
      return true;
    }
    return this.#writeKnown(chunk, this.#owner.mustClose());
  }

  end(): void {
    if (this.isFinished) return;
    assert(this.#status !== 0 && !this.isEnding, 'end() out of order');
    this.isEnding = true;
    // If part of the response is still unsent, #onWritable or #releaseKept ends it later. If it ended now, it would count as
    // finished, and a server that is draining might close the connection while the addon still buffers the rest.
    if (this.#unsent === null && !this.isStalled && !this.#keepsBytes()) this.#endNow();
  }

  /** Cuts the connection. */
  abort(): void {
    if (this.isFinished) return;
    this.isFinished = true;
    this.#response.close();
    this.#owner.onFinished();
  }

  onCallerGone(): void {
    this.isFinished = true;
  }

  /** The head of the response, to be sent with its first bytes; null if it has been sent. */
  #takeHead(): string | Uint8Array | null {
    if (!this.#headPending) return null;
    this.#headPending = false;
    const lines = this.#closes ? `${this.#headerLines}\r\nconnection: close` : this.#headerLines;
    return headOf(this.#status, lines, this.#isAscii);
  }

  /**
   * Sends everything at once, without asking whether the socket takes it. Only for a response that leaves its connection open.
   */
  #endWhole(status: number, headerLines: string, body: string | Uint8Array): void {
    this.#headPending = false;
    sendWhole(this.#response, headOf(status, headerLines, this.#isAscii), body);
    this.#finish();
  }

  /** @param closes  whether the response must close its connection; ignored once the head has been sent */
  #writeKnown(chunk: Uint8Array, closes: boolean): boolean {
    if (this.#headPending) this.#closes = closes;
    const before = this.#response.getWriteOffset();
    const isLast = before + chunk.length >= this.#contentLength;
    const piece = this.#closes && isLast ? this.#keep().exchange(chunk) : chunk;
    if (piece.length === 0) return true;
    // The head declares the length that the first tryEnd() gets. If every later tryEnd() gets one byte more, the addon never
    // takes a closing response for complete.
    const length = this.#closes && !this.#headPending ? this.#contentLength + 1 : this.#contentLength;
    const [ok, done] = sendWithLength(this.#response, this.#takeHead(), piece, length);
    if (done) {
      this.#finish();
      return true;
    }
    return ok || this.#stall(piece, this.#response.getWriteOffset() - before);
  }

  #writeChunked(chunk: Uint8Array): boolean {
    // Once true, this stays true, even if the rest of the request arrives before the head is sent: bytes may have been kept back,
    // and those that follow must not overtake them.
    if (this.#headPending) this.#closes ||= this.#owner.mustClose();
    if (!this.#closes) return this.#writeChunks(chunk);
    const rest = this.#keep().exchange(chunk);
    return rest.length > 0 ? this.#writeChunks(rest) : !this.isStalled;
  }

  #writeChunks(bytes: Uint8Array): boolean {
    if (bytes.length === 0) return true;
    const taken = sendChunks(this.#response, this.#takeHead(), bytes);
    return taken < 0 || this.#stall(bytes, taken);
  }

  #keep(): KeptBack {
    this.#kept ??= new KeptBack(this.#contentLength, () => this.#releaseKept());
    return this.#kept;
  }

  #keepsBytes(): boolean {
    return this.#kept !== null && !this.#kept.isEmpty;
  }

  /**
   * Sends the bytes kept back, if the operating system has taken all bytes before them. KeptBack calls this in an event-loop turn
   * of its own.
   */
  #releaseKept(): void {
    const kept = this.#kept;
    // If the response is stalled, #onWritable has the bytes released.
    if (this.isFinished || this.isStalled || kept === null || kept.isEmpty) return;
    if (this.#contentLength === 1) {
      this.#owner.afterRest(() => this.#closeWithByte(kept));
      return;
    }
    const ok = kept.release(this.#response, this.#takeHead());
    if (!ok) this.#awaitWritable();
    // With a known length, these were the last bytes, even if end() has not been called yet.
    else if (this.isEnding || this.#contentLength >= 0) this.#endNow();
  }

  /**
   * The socket is full. Copies the bytes that were not taken: the chunk is a part of the upstream's read buffer, which the next
   * read overwrites.
   */
  #stall(chunk: Uint8Array, taken: number): false {
    // Not slice(): that of a Buffer does not copy.
    this.#unsent = taken < chunk.length ? new Uint8Array(chunk.subarray(taken)) : null;
    this.#awaitWritable();
    return false;
  }

  #awaitWritable(): void {
    this.isStalled = true;
    if (this.#watching) return;
    this.#watching = true;
    this.#response.onWritable(() => this.#onWritable());
  }

  /** @returns false if a tryEnd() has failed again, as the addon expects */
  #onWritable(): boolean {
    if (this.isFinished) return true;
    this.hasMoved = true;
    const wasStalled = this.isStalled;
    this.isStalled = false;
    const unsent = this.#unsent;
    const known = this.#contentLength >= 0;
    this.#unsent = null;
    if (unsent === null) {
      flush(this.#response);
      if (!wasStalled) return true;
      if (known && this.#keepsBytes()) {
        // The socket refused the byte kept back. No write() has returned false because of it, so nobody awaits onWritable.
        this.#kept?.schedule();
        return true;
      }
    } else {
      const ok = known ? this.#writeKnown(unsent, this.#closes) : this.#writeChunks(unsent);
      if (!ok) return !known;
      if (this.isFinished) {
        // The last byte has been sent. But the write() that brought it returned false, so the exchange awaits onWritable
        // before it calls end().
        if (!this.isEnding) this.#owner.onWritable();
        return true;
      }
    }
    if (this.#keepsBytes()) this.#kept?.schedule();
    else if (this.isEnding) this.#endNow();
    if (!this.isEnding) this.#owner.onWritable();
    return true;
  }

  /** Ends the response, once all its bytes have been sent. */
  #endNow(): void {
    if (this.#headPending) {
      this.#headPending = false;
      this.#endWithoutBody(
        this.#status,
        this.#headerLines,
        this.#hasBody ? 0 : this.#contentLength,
        this.#owner.mustClose(),
      );
      return;
    }
    if (!this.#closes) this.#endChunks();
    else if (this.#contentLength >= 0) this.#owner.afterRest(() => this.abort());
    // In a separate turn: inside a callback of the addon the last chunk would leave only after the connection was closed.
    else setImmediate(() => this.#owner.afterRest(() => this.#endChunks()));
  }

  #endChunks(): void {
    if (this.isFinished) return;
    endChunks(this.#response, this.#secondHandle, this.#closes);
    this.#finish();
  }

  #endWithoutBody(status: number, headerLines: string, contentLength: number, mustClose: boolean): void {
    // RFC 9110 §8.6: a 204 must not declare a length, even if the service did.
    const lines = headerLines + (contentLength >= 0 && status !== 204 ? `\r\ncontent-length: ${contentLength}` : '');
    if (!mustClose && this.#interimLength === 0 && !closesByChance()) {
      sendWithoutBody(this.#response, headOf(status, lines, this.#isAscii));
      this.#finish();
      return;
    }
    this.#status = status;
    this.isEnding = true;
    sendClosingHead(this.#response, status, lines, this.#isAscii);
    // In a separate turn: inside a callback of the addon the head leaves only when the callback returns.
    setImmediate(() => this.#owner.afterRest(() => this.abort()));
  }

  #closeWithByte(kept: KeptBack): void {
    if (this.isFinished) return;
    sendByteAndClose(this.#response, headOf(this.#status, this.#headerLines, this.#isAscii), kept.take());
    this.#finish();
  }

  #finish(): void {
    this.isFinished = true;
    this.#owner.onFinished();
  }
}
