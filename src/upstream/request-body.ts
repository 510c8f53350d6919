import type { Socket } from 'node:net';
import { assert } from '../assert.ts';

/**
 * Maximum body bytes, chunk framing included, that one write gives to the socket; READ_BUFFER says why 56 KiB. (The first write
 * has the request head in front.) Node counts a write as unsent until all of it has left, so an upload's progress shows only in
 * whole pieces.
 */
const MAX_PIECE_BYTES = 56 * 1024;
/** Room for the framing of one chunk: its size in hex and two CRLF. */
const FRAME_BYTES = 16;
/** A piece up to this size gets its own buffer, which is cheaper than using the scratch buffer. */
const MAX_SMALL_BYTES = 16 * 1024;

/**
 * The buffer in which large pieces are framed. It is reused as long as the kernel takes each piece at once. If a piece stays
 * queued in the socket, the socket keeps the buffer, and the next large piece gets a new one.
 */
let scratch: Buffer | null = null;
/** Room for a piece of MAX_PIECE_BYTES with the request head before it. With a longer head, the piece gets its own buffer. */
const SCRATCH_BYTES = 80 * 1024;

function takeScratch(): Buffer {
  const taken = scratch ?? Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  scratch = null;
  return taken;
}

/**
 * The request body of one call: frames it, sends the request head together with the first piece, and queues what cannot be sent
 * yet. It copies each chunk, because the HTTP edge reuses the chunk's memory after the callback.
 *
 * Tested by test/upstream/client.test.ts, backpressure.test.ts and shared-buffer.test.ts.
 */
export class RequestBody {
  /** At least one octet was given to a socket: from then on, the request may have had an effect. */
  started = false;
  /** Octets given to a socket, framing included. Minus those that the socket still buffers, this is the upload's progress. */
  givenBytes = 0;
  /** The socket buffers octets that the kernel has not taken: nothing more is given to it before its 'drain'. */
  congested = false;
  /** The upstream does not want the rest of the body: chunks are taken and dropped. */
  #discarding = false;
  #socket: Socket | null = null;
  #head = '';
  /** Pieces that no socket has taken yet: framed, copied, in order. */
  #queue: Buffer[] = [];
  /** Octets of Content-Length still to come, or -1 when chunked. */
  #left: number;
  readonly #isChunked: boolean;
  #ended = false;
  #owesWritable = false;

  constructor(bodyLength: number) {
    this.#left = bodyLength;
    this.#isChunked = bodyLength < 0;
  }

  /** Whether the whole body has been framed and handed to the socket. Stays false once the rest of the body is discarded. */
  get complete(): boolean {
    return (this.#ended || this.#left === 0) && this.#queue.length === 0 && this.#head === '' && !this.#discarding;
  }

  /** Whether the upload waits for more body from the caller, not for the upstream. */
  get awaitsCaller(): boolean {
    return !this.#ended && this.#left !== 0 && !this.congested;
  }

  /**
   * Sends on `socket` from now on. If no piece is queued, the head waits until the end of the current callback, so that it can
   * leave together with a first piece.
   */
  attach(socket: Socket, head: string): void {
    assert(this.#socket === null && !this.started);
    this.#socket = socket;
    this.#head = head;
    this.congested = false;
    if (this.#queue.length > 0) this.#flush();
    else queueMicrotask(this.#flushHead);
  }

  /** The connection is gone. What was not sent stays queued for another connection. */
  detach(): void {
    this.#socket = null;
  }

  /** @returns false when the next chunk should wait for `onWritable`. This chunk has been taken all the same. */
  write(chunk: Uint8Array): boolean {
    assert(!this.#ended, 'write after end');
    if (!this.#isChunked) {
      assert(chunk.length <= this.#left, 'more body than Content-Length');
      this.#left -= chunk.length;
    }
    if (this.#discarding) return true;
    let at = 0;
    while (at < chunk.length) at += this.#writePiece(chunk, at);
    this.#owesWritable = this.congested || this.#socket === null;
    return !this.#owesWritable;
  }

  end(): void {
    assert(!this.#ended, 'end after end');
    assert(this.#isChunked || this.#left === 0, 'less body than Content-Length');
    this.#ended = true;
    if (!this.#isChunked || this.#discarding) return;
    const last = Buffer.from('0\r\n\r\n', 'latin1');
    this.#queue.push(last);
    if (this.#socket !== null && !this.congested) this.#flush();
  }

  discard(): void {
    this.#discarding = true;
    this.#queue = [];
    this.congested = false;
  }

  /** The socket has room again. @returns whether `onWritable` has to be called now */
  drained(): boolean {
    this.congested = false;
    if (this.#queue.length > 0) this.#flush();
    return this.takeWritable();
  }

  /** `write` returned false, and there is room now. True only once per wait: the code that gets true must call `onWritable`. */
  takeWritable(): boolean {
    if (!this.#owesWritable || this.congested || this.#ended || this.#socket === null) return false;
    this.#owesWritable = false;
    return true;
  }

  #writePiece(chunk: Uint8Array, at: number): number {
    const data = chunk.subarray(at, at + MAX_PIECE_BYTES - FRAME_BYTES);
    if (this.#mustQueue) {
      const own = Buffer.allocUnsafe(data.length + FRAME_BYTES);
      this.#queue.push(own.subarray(0, this.#frame(own, '', data)));
      return data.length;
    }
    const socket = this.#socket as Socket;
    const needed = this.#head.length + data.length + FRAME_BYTES;
    const isSmall = needed <= MAX_SMALL_BYTES || needed > SCRATCH_BYTES || socket.writableLength > 0;
    const into = isSmall ? Buffer.allocUnsafe(needed) : takeScratch();
    this.#give(into.subarray(0, this.#frame(into, this.#head, data)));
    if (!isSmall && socket.writableLength === 0) scratch = into;
    return data.length;
  }

  get #mustQueue(): boolean {
    return this.#socket === null || this.congested || this.#queue.length > 0;
  }

  #frame(into: Buffer, head: string, data: Uint8Array): number {
    let at = into.write(head, 0, 'latin1');
    if (this.#isChunked) at += into.write(`${data.length.toString(16)}\r\n`, at, 'latin1');
    into.set(data, at);
    at += data.length;
    return this.#isChunked ? at + into.write('\r\n', at, 'latin1') : at;
  }

  /** @param piece begins with the request head, unless that was sent before */
  #give(piece: Buffer): void {
    const socket = this.#socket as Socket;
    // `write` also returns false for a large piece that the kernel took at once. Only `writableLength` tells the difference.
    const hasRoom = socket.write(piece) || socket.writableLength === 0;
    if (!this.started && socket.errored) {
      // The kernel refused the write at once, so not one octet was sent. The body can still go to another connection.
      this.#queue.push(Buffer.from(piece.subarray(this.#head.length)));
      this.congested = true;
      return;
    }
    this.started = true;
    this.#head = '';
    this.givenBytes += piece.length;
    this.congested = !hasRoom;
  }

  readonly #flushHead = (): void => {
    if (this.#socket !== null && this.#head !== '') this.#flush();
  };

  /**
   * Sends the queue, with the request head before the first piece. It sends piece by piece: with all pieces in one write, progress
   * could not be seen before the end of the write.
   */
  #flush(): void {
    if (this.#head !== '') this.#flushHeadWith(this.#queue[0]);
    while (this.#queue.length > 0 && !this.congested) this.#give(this.#queue.shift() as Buffer);
  }

  #flushHeadWith(first: Buffer | undefined): void {
    const socket = this.#socket as Socket;
    socket.cork();
    socket.write(this.#head, 'latin1');
    if (first !== undefined) socket.write(first);
    socket.uncork();
    this.congested = socket.errored !== null || (socket.writableNeedDrain && socket.writableLength > 0);
    // The kernel refused the write at once. The head and the first piece stay here for another connection.
    if (socket.errored) return;
    this.started = true;
    this.#head = '';
    if (first === undefined) return;
    this.#queue.shift();
    this.givenBytes += first.length;
  }
}
