import { assert } from '../assert.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../gate/caller-io.ts';
import { addressOf } from './address.ts';
import { type BodyOwner, CallerBody } from './caller-body.ts';
import { KeptBack } from './kept-back.ts';
import { statusLine } from './status.ts';
import type { StreamOwner } from './stream-owner.ts';
import { closesByChance, isChecked } from './unread.ts';
import type { HttpResponse } from './uws.ts';

/**
 * The legacy addon can drop bytes when one corked write is larger than what is left of its 16 KiB cork buffer while the
 * socket is full, so a chunked write goes out in pieces of at most this much, each in a cork of its own.
 */
const MAX_CORKED_WRITE = 15_900;
/**
 * One response on uWebSockets.js.
 *
 *   open ──begin──► head pending ──first bytes──► streaming ──end──► finished
 *     └──respond──────────────────────────────────────────────────────►┘
 *   any ──caller leaves──► finished (aborted)      any ──abort()──► finished (cut)
 *
 * The addon can send a head only together with the first body bytes or the end, so a stream's head leaves with its first
 * event. A body of known length goes out with tryEnd, any other with write: never both (see DESIGN.md). Bytes the socket did not
 * take are copied and kept; there is at most one upstream read of them, because write() said false.
 *
 * A response that has to end its connection says so in its head, and stays open until all of it is with the system: the addon
 * must not take it for finished, or it would serve what comes next on that connection. One of unknown length cannot stay open
 * behind its last chunk, which only the addon's end() writes: its connection is closed in the very turn of that.
 *
 * A response that begins before its request is whole ends its connection too. The addon clears the connection's idle timeout
 * with the last bytes of the request. If those came after the response, when the handle is gone, nothing would set the timeout
 * again: callers could collect open connections at one call each.
 */
export class UwsCallerStream implements CallerStream, BodyOwner {
  /** For the owner's list. */
  place = 0;
  readonly #response: HttpResponse;
  readonly #owner: StreamOwner;
  readonly #head: RequestHead;
  /** A chunked request's connection is not used again: lenient parsing must not decide where the next request starts. */
  readonly #closeAfter: boolean;
  /** A second handle, of a chunked request or during a drain: the addon takes the first one away at the end of the response. */
  readonly #connection: HttpResponse | null;
  #events: CallerEvents | null = null;
  /** Of the request; null when it has none. */
  readonly #body: CallerBody | null;
  #finished = false;
  #headPending = false;
  #status = 0;
  #headerLines = '';
  #isAscii = true;
  #contentLength = -1;
  #hasBody = true;
  /** The connection ends with this response. Decided with the head. */
  #closes = false;
  /** Of a response that closes: its last bytes, until the system has taken everything before them. */
  #kept: KeptBack | null = null;
  /** Body bytes the socket has not taken yet. */
  #unsent: Uint8Array | null = null;
  #stalled = false;
  #ending = false;
  #watching = false;
  /** Bytes of the caller's came or went since the last tick. */
  #moved = false;
  #idleTicks = 0;
  aborted = false;
  #address: string | null = null;

  constructor(response: HttpResponse, head: RequestHead, owner: StreamOwner, connection: HttpResponse | null = null) {
    this.#response = response;
    this.#connection = connection;
    this.#head = head;
    this.#owner = owner;
    this.#closeAfter = head.bodyLength < 0 || head.fault !== null;
    response.onAborted(() => this.#onAborted());
    this.#body = head.bodyLength === 0 ? null : new CallerBody(response, this);
  }

  /** Read only when it is asked for, which a call with a key never does: the addon takes 0.5 µs to write it out. */
  get address(): string | null {
    // Nobody asked while the caller was there, and the addon cannot tell any more.
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
   * Without effect once the response has begun: the addon's pause() stops the socket's writable event as well, and resume()
   * after a failed write does not bring it back. What arrives meanwhile is bounded by the bound on request bodies.
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
      // RFC 9110 §8.6: no length, or that of the representation, which is not known here.
      this.#endWithoutBody(status, headerLines, -1, closes);
    } else if (length === 0 || this.#head.method === 'HEAD') {
      this.#endWithoutBody(status, headerLines, Buffer.byteLength(body), closes);
    } else if (closes || isChecked(length + headerLines.length)) {
      const bytes = typeof body === 'string' ? Buffer.from(body) : body;
      this.begin(status, headerLines, true, bytes.length, true);
      this.#ending = true;
      this.#writeKnown(bytes, closes);
    } else {
      this.#endWhole(status, headerLines, body);
    }
  }

  begin(status: number, headerLines: string, isAscii: boolean, contentLength: number, hasBody: boolean): void {
    if (this.#finished) return;
    assert(!this.#headPending && this.#status === 0, 'begin() twice');
    // pause() stops writes too.
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
    // What the addon holds of a stalled stream would be lost if the server closed right after an end.
    if (this.#unsent === null && !this.#stalled && !this.#keepsBytes()) this.#endNow();
  }

  /** For the body. Once the response is whole nobody waits for the rest of the request. */
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
   * Called every few seconds. Left alone, the addon cuts whoever takes nothing for 10 s, sends less than 16 KB/s, or waits
   * because the service does not read its upload.
   *
   * @param maxIdleTicks  a caller that should take or send something and does not is cut after so many
   */
  tick(maxIdleTicks: number): void {
    if (this.#finished || !(this.#stalled || this.#awaitsBody())) return;
    if (this.#body?.isPaused) {
      // It is the service's turn, and its timeouts say for how long.
      this.#response.resume();
      this.#response.pause();
      return;
    }
    this.#idleTicks = this.#moved ? 0 : this.#idleTicks + 1;
    this.#moved = false;
    if (this.#idleTicks > maxIdleTicks) {
      // As if it had gone away.
      this.#response.close();
      return;
    }
    // resume() restores the events that the last pause() found. Alone, it would leave this socket with those of another one,
    // or none: a stalled reader then hangs for ever.
    this.#response.pause();
    this.#response.resume();
  }

  #awaitsBody(): boolean {
    return this.#body !== null && !this.#body.isDone;
  }

  #mustClose(): boolean {
    return this.#closeAfter || this.#owner.draining || this.#awaitsBody();
  }

  /** The response is sent, but for what `then` sends and the end of the connection. */
  #afterBody(then: () => void): void {
    if (this.#awaitsBody()) this.#body?.drop(this.#owner.maxRequestBodyBytes, then);
    else then();
  }

  /**
   * The whole head in one call, as a long status line: each call into the addon costs about 0.2 µs, and a response has a
   * dozen headers. It writes text as UTF-8, so what is not ASCII goes as bytes.
   */
  #writeHead(status: number, headerLines: string): void {
    const head = statusLine(status) + headerLines;
    this.#response.writeStatus(this.#isAscii ? head : Buffer.from(head, 'latin1'));
  }

  /** Inside a cork, before the first body bytes. */
  #writePendingHead(closes: boolean): void {
    if (!this.#headPending) return;
    this.#headPending = false;
    this.#closes = closes;
    this.#writeHead(this.#status, closes ? `${this.#headerLines}\r\nconnection: close` : this.#headerLines);
  }

  #endWhole(status: number, headerLines: string, body: string | Uint8Array): void {
    this.#headPending = false;
    this.#response.cork(() => {
      this.#writeHead(status, headerLines);
      this.#response.end(body);
    });
    this.#finish();
  }

  /** @param closes  unless the head was sent, which has decided it */
  #writeKnown(chunk: Uint8Array, closes: boolean): boolean {
    if (this.#headPending) this.#closes = closes;
    const before = this.#response.getWriteOffset();
    const isLast = before + chunk.length >= this.#contentLength;
    const piece = this.#closes && isLast ? this.#keep('length').exchange(chunk) : chunk;
    // The current addon treats an empty tryEnd() as the end of the response.
    if (piece.length === 0) return true;
    let ok = false;
    let done = false;
    this.#response.cork(() => {
      // The addon writes the length it is given first, and is done at the one it is given last.
      const length = this.#closes && !this.#headPending ? this.#contentLength + 1 : this.#contentLength;
      this.#writePendingHead(this.#closes);
      [ok, done] = this.#response.tryEnd(piece, length);
    });
    if (done) {
      this.#finish();
      return true;
    }
    return ok || this.#stall(piece, this.#response.getWriteOffset() - before);
  }

  #writeChunked(chunk: Uint8Array): boolean {
    // Once decided it stays: bytes may be kept back already when the request becomes whole before the head has left.
    if (this.#headPending) this.#closes ||= this.#mustClose();
    if (!this.#closes) return this.#writePieces(chunk);
    const rest = this.#keep('chunks').exchange(chunk);
    return rest.length > 0 ? this.#writePieces(rest) : !this.#stalled;
  }

  #keep(kind: 'chunks' | 'length'): KeptBack {
    this.#kept ??= new KeptBack(kind, () => this.#releaseKept());
    return this.#kept;
  }

  #keepsBytes(): boolean {
    return this.#kept !== null && !this.#kept.isEmpty;
  }

  /**
   * In a turn and a cork of its own: that the addon takes a byte means that the system has all before it. What the addon still
   * holds of a response is lost when its connection is closed: the last bytes, should the system be full to the one before.
   */
  #releaseKept(): void {
    const kept = this.#kept;
    // A stalled stream comes back when it is writable.
    if (this.#finished || this.#stalled || kept === null || kept.isEmpty) return;
    if (this.#contentLength === 1) {
      this.#afterBody(() => this.#closeWithByte());
      return;
    }
    let ok = false;
    this.#response.cork(() => {
      this.#writePendingHead(true);
      ok = kept.release((bytes) =>
        this.#contentLength < 0
          ? this.#response.write(bytes)
          : this.#response.tryEnd(bytes, this.#contentLength + 1)[0],
      );
    });
    if (!ok) this.#awaitWritable();
    // Of a known length that was all, whether its end was told or not.
    else if (this.#ending || this.#contentLength >= 0) this.#endNow();
  }

  #writePieces(chunk: Uint8Array): boolean {
    for (let from = 0; from < chunk.length; from += MAX_CORKED_WRITE) {
      const piece = chunk.length <= MAX_CORKED_WRITE ? chunk : chunk.subarray(from, from + MAX_CORKED_WRITE);
      let ok = false;
      this.#response.cork(() => {
        this.#writePendingHead(this.#closes);
        ok = this.#response.write(piece);
      });
      // The piece was taken; the rest waits for onWritable.
      if (!ok) return this.#stall(chunk, from + piece.length);
    }
    return true;
  }

  /** The socket is full: keeps a copy of what it did not take, because the chunk is the upstream's read buffer. */
  #stall(chunk: Uint8Array, taken: number): false {
    // Not slice(): on a Buffer that is a view.
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

  /** @returns for the addon: false when a tryEnd failed again */
  #onWritable(): boolean {
    if (this.#finished) return true;
    this.#moved = true;
    const wasStalled = this.#stalled;
    this.#stalled = false;
    const unsent = this.#unsent;
    const known = this.#contentLength >= 0;
    this.#unsent = null;
    if (unsent === null) {
      // With onWritable set the addon leaves draining to us: an empty cork writes out what it still holds. It may hold
      // bytes of a write that reported success: a cork fits into its buffer first and meets the socket afterwards.
      this.#response.cork(noop);
      if (!wasStalled) return true;
      if (known && this.#keepsBytes()) {
        // The byte was refused, of which nobody was told.
        this.#kept?.schedule();
        return true;
      }
    } else {
      const ok = known ? this.#writeKnown(unsent, this.#closes) : this.#writePieces(unsent);
      if (!ok) return !known;
      if (this.#finished) {
        // That was all of it, but who was told to wait must hear that it went: the call is over only when its end was told.
        if (!this.#ending) this.#events?.onCallerWritable();
        return true;
      }
    }
    if (this.#keepsBytes()) this.#kept?.schedule();
    else if (this.#ending) this.#endNow();
    if (!this.#ending) this.#events?.onCallerWritable();
    return true;
  }

  #endNow(): void {
    if (this.#headPending) {
      this.#headPending = false;
      this.#endWithoutBody(this.#status, this.#headerLines, this.#hasBody ? 0 : this.#contentLength, this.#mustClose());
      return;
    }
    if (!this.#closes) this.#endChunks();
    else if (this.#contentLength >= 0) this.#afterBody(() => this.abort());
    // Not within a callback of the addon's, where what is corked leaves only when that returns.
    else setImmediate(() => this.#afterBody(() => this.#endChunks()));
  }

  /** Streamed so far. Asking the addon to close here would write a header into the body. */
  #endChunks(): void {
    if (this.#finished) return;
    // Without a second handle only the addon's timeout closes the connection, 10 s after end(). The last bytes of the request
    // would clear that timeout, so the gateway does not read them.
    if (this.#connection === null && this.#awaitsBody()) this.#response.pause();
    this.#response.cork(() => this.#response.end());
    // Before the addon reads from it again: it serves what comes behind an end.
    this.#connection?.close();
    this.#finish();
  }

  /**
   * The legacy addon's endWithoutBody works without arguments only: given a length it waits for that many bytes for ever,
   * and given `undefined` it declares 2^63.
   */
  #endWithoutBody(status: number, headerLines: string, contentLength: number, mustClose: boolean): void {
    // RFC 9110 §8.6: never in a 204, whatever the service said.
    const length = contentLength >= 0 && status !== 204 ? `\r\ncontent-length: ${contentLength}` : '';
    if (mustClose || closesByChance()) {
      this.#closeWithHead(status, headerLines + length);
      return;
    }
    this.#response.cork(() => {
      this.#writeHead(status, headerLines + length);
      this.#response.endWithoutBody();
    });
    this.#finish();
  }

  /** The addon can end a response without a body, or close after one with a body: so this one ends by closing. */
  #closeWithHead(status: number, headerLines: string): void {
    this.#status = status;
    this.#ending = true;
    // The addon ends the line, and so the head; `date` is its doing otherwise.
    const closing = `\r\ndate: ${new Date().toUTCString()}\r\nconnection: close\r\n`;
    this.#response.cork(() => this.#writeHead(status, headerLines + closing));
    // What is written within a handler leaves when that returns.
    setImmediate(() => this.#afterBody(() => this.abort()));
  }

  /** A byte cannot be kept back from itself. The addon closes as soon as it has sent all, and says so in the head. */
  #closeWithByte(): void {
    if (this.#finished) return;
    this.#response.cork(() => {
      this.#writeHead(this.#status, this.#headerLines);
      this.#response.end(this.#kept?.take(), true);
    });
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

const noop = (): void => {};
