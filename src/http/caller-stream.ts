import { assert } from '../assert.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../gate/caller-io.ts';
import { addressOf } from './address.ts';
import { type BodyOwner, CallerBody } from './caller-body.ts';
import { afterRest, endChunks, sendByteAndClose, sendClosingHead } from './closing.ts';
import { KeptBack } from './kept-back.ts';
import type { StreamOwner } from './stream-owner.ts';
import { closesByChance, isChecked } from './unread.ts';
import { UploadPace } from './upload-pace.ts';
import type { HttpResponse } from './uws.ts';
import {
  flush,
  headOf,
  renewTimeout,
  sendChunks,
  sendInterim,
  sendWhole,
  sendWithLength,
  sendWithoutBody,
} from './uws-response.ts';

/**
 * Maximum characters of header lines of all interim responses before one response; further ones are dropped. The addon does not say
 * whether the caller reads them, and buffers those that it does not read. A response after interim ones is therefore sent in a way
 * that shows whether the caller reads (unread.ts), or closes its connection.
 */
const MAX_INTERIM_LENGTH = 8_192;

/**
 * One response on uWebSockets.js ("the addon"), and the body of the request that it answers.
 *
 *          begin()                first bytes             end()             all is sent
 *   open ──────────► head pending ────────────► streaming ───────► ending ─────────────► finished
 *     │                    └───── end(), without a body ────────────────────────────────────►│
 *     └──────────────────── respond() ──────────────────────────────────────────────────────►┘
 *   streaming, ending:   the socket is full ──► stalled ──► the addon calls onWritable
 *   all but finished:    the caller leaves ──► finished and `aborted`;  abort() cuts the connection ──► finished
 *
 * **The body.** A small body that is written in one piece goes out by the addon's end() (unread.ts). Any other body of known
 * length goes out by the addon's tryEnd(), and its last byte finishes the response, even before our end(). A body of unknown
 * length goes out by the addon's write(). No response uses both tryEnd() and write().
 *
 * **A stalled reader.** When the socket is full, write() returns false and the stream is *stalled* until the addon reports the
 * socket writable. The stream copies the bytes that neither the socket nor the addon took. That is at most one piece, because
 * whoever writes has to wait for onCallerWritable; the exchange pauses the service until then.
 *
 * **Closing.** Some responses close their connection once all of the response has been sent: closing.ts says which, and how.
 *
 * Tested by test/http/caller-stream.test.ts, closing.test.ts, early-answers.test.ts, slow-callers.test.ts and unread.test.ts.
 */
export class UwsCallerStream implements CallerStream, BodyOwner {
  /** The index of this stream in the server's list of open streams. */
  place = 0;
  readonly #response: HttpResponse;
  readonly #owner: StreamOwner;
  readonly #head: RequestHead;
  /** The request is chunked or has a fault: no other request is served on its connection. */
  readonly #isLastRequest: boolean;
  /**
   * A second handle of the same connection, or null. `#response` is no longer valid when the response has ended; the second handle
   * can still close the connection then. The server has one only for chunked requests and during a drain.
   */
  readonly #secondHandle: HttpResponse | null;
  #events: CallerEvents | null = null;
  /** The body of the request, or null if it has none. */
  readonly #body: CallerBody | null;
  #finished = false;
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
  /** The socket is full: nothing may be written until the addon calls onWritable. */
  #stalled = false;
  /** respond() or end() has been called, but the socket may not have taken the whole response yet. */
  #ending = false;
  /** onWritable() has been called on the addon. One handler serves the whole response. */
  #watching = false;
  /** Since the last tick, bytes have come from the caller or gone to it. */
  #moved = false;
  #idleTicks = 0;
  /** Null until the first tick that finds the body incomplete: most bodies need no look. */
  #pace: UploadPace | null = null;
  aborted = false;
  #address: string | null = null;

  constructor(response: HttpResponse, head: RequestHead, owner: StreamOwner, secondHandle: HttpResponse | null = null) {
    this.#response = response;
    this.#secondHandle = secondHandle;
    this.#head = head;
    this.#owner = owner;
    this.#isLastRequest = head.bodyLength < 0 || head.fault !== null;
    response.onAborted(() => this.#onAborted());
    this.#body = head.bodyLength === 0 ? null : new CallerBody(response, this);
  }

  /** The addon is asked only when somebody reads this, because asking takes 0.5 µs. A call with a known key never reads it. */
  get address(): string | null {
    // Nobody read the address before the response ended, and now the addon can no longer tell it.
    if (this.#address === null && this.#finished) return null;
    this.#address ??= addressOf(this.#response, this.#head.headers, this.#owner.trustedProxyHops);
    return this.#address;
  }

  get wasCut(): boolean {
    return this.#owner.closing;
  }

  attach(events: CallerEvents): void {
    this.#events = events;
    if (this.aborted) {
      events.onCallerGone();
      return;
    }
    this.#body?.attach(events);
    this.resumeBody();
  }

  /**
   * Does nothing once the response has begun: the addon's pause() also stops the socket's writable event, and a resume() after a
   * failed write does not bring it back. The body then arrives unpaused; the maximum size of request bodies bounds it.
   */
  pauseBody(): void {
    if (!this.#finished && this.#status === 0) this.#body?.pause();
  }

  resumeBody(): void {
    if (!this.#finished) this.#body?.resume();
  }

  respond(status: number, headerLines: string, body: string | Uint8Array): void {
    if (this.#finished) return;
    assert(!this.#headPending && this.#status === 0, 'respond() after begin()');
    this.resumeBody();
    const closes = this.#mustClose();
    const { length } = body;
    if (status === 204 || status === 304) {
      // RFC 9110 §8.6: a 204 declares no length, and a 304 none or that of the representation, which is not known here.
      this.#endWithoutBody(status, headerLines, -1, closes);
    } else if (length === 0 || this.#head.method === 'HEAD') {
      this.#endWithoutBody(status, headerLines, Buffer.byteLength(body), closes);
    } else if (closes || this.#interimLength > 0 || isChecked(length + headerLines.length)) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      this.begin(status, headerLines, true, bytes.length, true);
      this.#ending = true;
      this.#writeKnown(bytes, closes);
    } else {
      this.#endWhole(status, headerLines, body);
    }
  }

  /**
   * Does nothing while some of the request has not arrived: the socket of a paused request cannot say when it is writable.
   */
  interim(status: number, headerLines: string, isAscii: boolean): void {
    if (this.#finished || this.#status !== 0 || this.#awaitsBody()) return;
    if (this.#interimLength + headerLines.length > MAX_INTERIM_LENGTH) return;
    this.#interimLength += headerLines.length;
    sendInterim(this.#response, headOf(status, headerLines, isAscii));
  }

  begin(status: number, headerLines: string, isAscii: boolean, contentLength: number, hasBody: boolean): void {
    if (this.#finished) return;
    assert(!this.#headPending && this.#status === 0, 'begin() twice');
    // pauseBody() says why the body must not stay paused from here on.
    this.resumeBody();
    this.#status = status;
    this.#headerLines = headerLines;
    this.#isAscii = isAscii;
    this.#hasBody = hasBody;
    this.#contentLength = contentLength;
    this.#headPending = true;
  }

  write(chunk: Uint8Array): boolean {
    if (this.#finished) return true;
    this.#moved = true;
    assert(this.#status !== 0 && this.#hasBody && !this.#ending && this.#unsent === null, 'write() out of order');
    if (this.#contentLength < 0) return this.#writeChunked(chunk);
    if (
      this.#headPending &&
      chunk.length === this.#contentLength &&
      !this.#mustClose() &&
      this.#interimLength === 0 &&
      !isChecked(chunk.length + this.#headerLines.length)
    ) {
      this.#endWhole(this.#status, this.#headerLines, chunk);
      return true;
    }
    return this.#writeKnown(chunk, this.#mustClose());
  }

  end(): void {
    if (this.#finished) return;
    assert(this.#status !== 0 && !this.#ending, 'end() out of order');
    this.#ending = true;
    // If some of the response is still to be sent, #onWritable or #releaseKept ends it later. If it ended now, it would count as
    // finished, and a server that is draining might close the connection while the addon still buffers the rest.
    if (this.#unsent === null && !this.#stalled && !this.#keepsBytes()) this.#endNow();
  }

  /** CallerBody calls this. After respond() or end(), nobody wants the rest of the request. */
  onBodyBytes(): boolean {
    this.#moved = true;
    return !this.#finished && !this.#ending;
  }

  abort(): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#response.close();
    this.#owner.onFinished(this);
  }

  /**
   * The server calls this every few seconds. It restarts the addon's timeout, so that the gateway and not the addon decides when
   * a caller is idle. The addon would cut a caller that takes nothing for 10 s, that sends less than 16 KB/s, or that waits
   * because the service does not read its upload.
   *
   * @param maxIdleTicks  a caller that ought to send or take bytes, and has done neither for more ticks than this, is cut
   */
  tick(maxIdleTicks: number): void {
    if (this.#finished || !(this.#stalled || this.#awaitsBody())) return;
    if (this.#body !== null && this.#isTooSlow(this.#body)) this.#events?.onCallerTooSlow?.();
    if (this.#finished) return;
    if (this.#body?.isPaused) {
      // The caller waits for the service to read its upload. The timeouts of the upstream client bound this wait.
      renewTimeout(this.#response, true);
      return;
    }
    this.#idleTicks = this.#moved ? 0 : this.#idleTicks + 1;
    this.#moved = false;
    // close() makes the addon call onAborted, as if the caller had left.
    if (this.#idleTicks > maxIdleTicks) this.#response.close();
    else renewTimeout(this.#response, false);
  }

  #isTooSlow(body: CallerBody): boolean {
    const { isDone, isPaused, wasPaused, bytes } = body;
    if (isDone || this.#ending) return false;
    body.wasPaused = isPaused;
    this.#pace ??= new UploadPace();
    return this.#pace.tick(bytes, wasPaused);
  }

  /** Whether some of the request has not arrived yet. */
  #awaitsBody(): boolean {
    return this.#body !== null && !this.#body.isDone;
  }

  /**
   * Whether a response that began now would have to close its connection: for one of the reasons in closing.ts, chance excepted.
   */
  #mustClose(): boolean {
    return this.#isLastRequest || this.#owner.draining || this.#awaitsBody();
  }

  /** @param then  closes the connection, when the rest of the request has been read and dropped */
  #afterRest(then: () => void): void {
    afterRest(this.#body, this.#owner.maxRequestBodyBytes, then);
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
    if (this.#headPending) this.#closes ||= this.#mustClose();
    if (!this.#closes) return this.#writeChunks(chunk);
    const rest = this.#keep().exchange(chunk);
    return rest.length > 0 ? this.#writeChunks(rest) : !this.#stalled;
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
    // If the stream is stalled, #onWritable has the bytes released.
    if (this.#finished || this.#stalled || kept === null || kept.isEmpty) return;
    if (this.#contentLength === 1) {
      this.#afterRest(() => this.#closeWithByte(kept));
      return;
    }
    const ok = kept.release(this.#response, this.#takeHead());
    if (!ok) this.#awaitWritable();
    // With a known length, these were the last bytes, even if end() has not been called yet.
    else if (this.#ending || this.#contentLength >= 0) this.#endNow();
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
    this.#stalled = true;
    if (this.#watching) return;
    this.#watching = true;
    this.#response.onWritable(() => this.#onWritable());
  }

  /** @returns what the addon wants to know: false if a tryEnd() has failed again */
  #onWritable(): boolean {
    if (this.#finished) return true;
    this.#moved = true;
    const wasStalled = this.#stalled;
    this.#stalled = false;
    const unsent = this.#unsent;
    const known = this.#contentLength >= 0;
    this.#unsent = null;
    if (unsent === null) {
      flush(this.#response);
      if (!wasStalled) return true;
      if (known && this.#keepsBytes()) {
        // What the socket refused was the byte kept back. No write() has returned false because of it, so nobody awaits
        // onCallerWritable.
        this.#kept?.schedule();
        return true;
      }
    } else {
      const ok = known ? this.#writeKnown(unsent, this.#closes) : this.#writeChunks(unsent);
      if (!ok) return !known;
      if (this.#finished) {
        // The last byte has been sent. But the write() that brought it returned false, so the exchange awaits onCallerWritable
        // before it calls end().
        if (!this.#ending) this.#events?.onCallerWritable();
        return true;
      }
    }
    if (this.#keepsBytes()) this.#kept?.schedule();
    else if (this.#ending) this.#endNow();
    if (!this.#ending) this.#events?.onCallerWritable();
    return true;
  }

  /** Ends the response, once all its bytes have been sent. */
  #endNow(): void {
    if (this.#headPending) {
      this.#headPending = false;
      this.#endWithoutBody(this.#status, this.#headerLines, this.#hasBody ? 0 : this.#contentLength, this.#mustClose());
      return;
    }
    if (!this.#closes) this.#endChunks();
    else if (this.#contentLength >= 0) this.#afterRest(() => this.abort());
    // In a turn of its own: inside a callback of the addon the last chunk would leave only after the connection was closed.
    else setImmediate(() => this.#afterRest(() => this.#endChunks()));
  }

  #endChunks(): void {
    if (this.#finished) return;
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
    this.#ending = true;
    sendClosingHead(this.#response, status, lines, this.#isAscii);
    // In a turn of its own: inside a callback of the addon the head leaves only when the callback returns.
    setImmediate(() => this.#afterRest(() => this.abort()));
  }

  #closeWithByte(kept: KeptBack): void {
    if (this.#finished) return;
    sendByteAndClose(this.#response, headOf(this.#status, this.#headerLines, this.#isAscii), kept.take());
    this.#finish();
  }

  #finish(): void {
    this.#finished = true;
    this.#owner.onFinished(this);
  }

  #onAborted(): void {
    if (this.#finished) return;
    this.aborted = true;
    this.#finished = true;
    this.#events?.onCallerGone();
    this.#owner.onFinished(this);
  }
}
