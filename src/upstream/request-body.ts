import type { Socket } from 'node:net';
import { assert } from '../assert.ts';

/** A piece handed to the socket at once: what Linux makes one packet of, see READ_BUFFER. Progress of an upload is seen in steps of this. */
const MAX_PIECE_BYTES = 56 * 1024;
/** Room for a chunk's hex size and two CRLF. */
const FRAME_BYTES = 16;
/** Below this a buffer of its own is cheaper than keeping the scratch buffer free. */
const MAX_SMALL_BYTES = 16 * 1024;

/**
 * Reused while the kernel takes everything at once, which is then all the copying there is. A piece that stays queued in the
 * socket keeps the buffer, and the next large piece gets a new one.
 */
let scratch: Buffer | null = null;
const SCRATCH_BYTES = 80 * 1024;

function takeScratch(): Buffer {
  const taken = scratch ?? Buffer.allocUnsafeSlow(SCRATCH_BYTES);
  scratch = null;
  return taken;
}

/**
 * The outgoing half of an exchange with a body: frames it, sends the head along with its first piece, and keeps what cannot
 * be sent yet. The caller's chunks are copied because the edge reuses their memory after the callback.
 */
export class RequestBody {
  /** Octets given to a socket: from here on the request may have had an effect. */
  started = false;
  /** Octets given to a socket, framing included: less what it still holds, the progress of the upload. */
  givenBytes = 0;
  /** The socket has more than it can send: wait for 'drain'. */
  congested = false;
  /** The upstream has refused the rest: take and drop it. */
  #discarding = false;
  #socket: Socket | null = null;
  #head = '';
  /** Framed and ours, in order: what no socket has taken yet. */
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

  /** Everything is framed, and handed to the socket. */
  get complete(): boolean {
    return (this.#ended || this.#left === 0) && this.#queue.length === 0 && this.#head === '' && !this.#discarding;
  }

  /** The next step is the caller's, not the upstream's. */
  get awaitsCaller(): boolean {
    return !this.#ended && this.#left !== 0 && !this.congested;
  }

  /** Sends on `socket` from now on. The head waits for the end of this turn, to go out with a first piece. */
  attach(socket: Socket, head: string): void {
    assert(this.#socket === null && !this.started);
    this.#socket = socket;
    this.#head = head;
    this.congested = false;
    if (this.#queue.length > 0) this.#flush();
    else queueMicrotask(this.#flushHead);
  }

  /** The connection is gone. What was not sent is still here for another. */
  detach(): void {
    this.#socket = null;
  }

  /** @returns false when the caller should wait. */
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

  /** The socket has room. @returns whether the caller is to be told. */
  drained(): boolean {
    this.congested = false;
    if (this.#queue.length > 0) this.#flush();
    return this.takeWritable();
  }

  /** Whether the caller waits for room and there is some: asked once, it is told. */
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

  /** @param piece starts with the head, unless that was sent before. */
  #give(piece: Buffer): void {
    const socket = this.#socket as Socket;
    // False also means 'taken at once, but large': only what is left in the socket tells.
    const hasRoom = socket.write(piece) || socket.writableLength === 0;
    if (!this.started && socket.errored) {
      // The kernel refused at once: not one octet left, and the body can still go to another connection.
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
   * Sends what is queued, the head along with the first piece. Piece by piece: all at once would be one write, and its
   * progress could not be seen before its end.
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
    // The kernel refused at once: the head and the piece stay for another connection.
    if (socket.errored) return;
    this.started = true;
    this.#head = '';
    if (first === undefined) return;
    this.#queue.shift();
    this.givenBytes += first.length;
  }
}
