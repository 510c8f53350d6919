import { ApiError, tooLargeError, unavailableError } from '../../errors.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../../gate/caller-io.ts';
import { refuseOverrides } from '../priced-operations.ts';
import { refuseEncodedBody } from './message-headers.ts';

/** Maximum bytes of a message. A longer one is 413. The message is in memory as a whole, and judging it keeps the event loop busy. */
const MAX_MESSAGE_BYTES = 1_048_576;
/** Maximum bytes that this process keeps for messages that are being read: 64 of the longest. Beyond it a message gets 503. */
const MAX_BYTES_BEING_READ = 67_108_864;
/**
 * Maximum time that a message may take to arrive; then it gets 408. The edge cuts callers that are idle for a minute, but a caller that
 * sends a byte now and then would keep its share of `MAX_BYTES_BEING_READ` for as long as it likes.
 */
const MAX_READ_MS = 30_000;

/** What is kept at first for a message that does not arrive in one piece. It doubles as often as needed. */
const FIRST_BYTES = 4_096;

const EMPTY = Buffer.alloc(0);
const METHODS = ['GET', 'POST', 'DELETE'];

/** Is told once what became of a request's body, unless the caller leaves first. */
export interface BodyListener {
  /** @param bytes  of the message, valid only until this returns; null if the request has none (GET, DELETE) */
  onBody(bytes: Uint8Array | null): void;
  onNoBody(error: unknown): void;
}

export type MessageBodiesOptions = {
  readonly maxMessageBytes?: number;
  readonly maxBytesBeingRead?: number;
  readonly maxReadMs?: number;
};

/**
 * Reads the messages that callers send to MCP servers. Other calls are forwarded while their body arrives; a message is read whole
 * first, since it decides what the call costs.
 *
 * Tested by test/proxy/mcp/message-bodies.test.ts.
 */
export class MessageBodies {
  readonly maxMessageBytes: number;
  readonly maxReadMs: number;
  readonly #maxBytesBeingRead: number;
  #bytesBeingRead = 0;

  constructor(options: MessageBodiesOptions = {}) {
    this.maxMessageBytes = Math.min(MAX_MESSAGE_BYTES, options.maxMessageBytes ?? MAX_MESSAGE_BYTES);
    this.#maxBytesBeingRead = options.maxBytesBeingRead ?? MAX_BYTES_BEING_READ;
    this.maxReadMs = options.maxReadMs ?? MAX_READ_MS;
  }

  /** Reads the body of one request. Tells the listener once, maybe before this returns. */
  read(head: RequestHead, caller: CallerStream, listener: BodyListener): void {
    try {
      checkHead(head, this.maxMessageBytes);
    } catch (error) {
      listener.onNoBody(error);
      return;
    }
    if (head.method !== 'POST') listener.onBody(null);
    else caller.attach(new MessageBody(this, listener));
  }

  /** @returns false if there is no room for so many bytes more */
  take(bytes: number): boolean {
    if (this.#bytesBeingRead + bytes > this.#maxBytesBeingRead) return false;
    this.#bytesBeingRead += bytes;
    return true;
  }

  giveBack(bytes: number): void {
    this.#bytesBeingRead -= bytes;
  }
}

/** Checks what the head of a request alone tells. Throws the `ApiError` that the caller gets. The methods are those of streamable HTTP. */
function checkHead(head: RequestHead, maxBytes: number): void {
  const { method, headers, bodyLength } = head;
  if (!METHODS.includes(method)) {
    const message = 'An MCP server takes messages by POST. GET opens its event stream, and DELETE ends a session.';
    throw new ApiError('method_not_allowed', message, { headers: { Allow: METHODS.join(', ') } });
  }
  if (method === 'POST') {
    if (bodyLength === 0) throw new ApiError('invalid_json', 'The body is empty.');
    if (bodyLength > maxBytes) throw tooLargeError(maxBytes);
    refuseEncodedBody(headers);
  } else {
    if (bodyLength !== 0) throw new ApiError('invalid_request', `A ${method} of an MCP server has no body.`);
    // A GET that a framework takes for a POST could call a tool for nothing.
    refuseOverrides(head);
  }
}

/**
 * The body of one request while it arrives. Its pieces are copied into one buffer: a caller may send chunks of a single byte, and an
 * object for each would take a hundred times their length.
 */
class MessageBody implements CallerEvents {
  readonly #bodies: MessageBodies;
  readonly #listener: BodyListener;
  #buffer = EMPTY;
  /** Bytes of `#buffer` that have arrived. */
  #length = 0;
  #isOver = false;
  #deadline: NodeJS.Timeout | null = null;

  constructor(bodies: MessageBodies, listener: BodyListener) {
    this.#bodies = bodies;
    this.#listener = listener;
  }

  onCallerBody(chunk: Uint8Array, last: boolean): void {
    if (this.#isOver) return;
    const length = this.#length + chunk.length;
    if (length > this.#bodies.maxMessageBytes) {
      this.#refuse(tooLargeError(this.#bodies.maxMessageBytes));
    } else if (last && this.#length === 0) {
      // Nearly every message arrives in one piece.
      this.#tell(chunk);
    } else if (!this.#makeRoom(length)) {
      this.#refuse(unavailableError());
    } else {
      this.#buffer.set(chunk, this.#length);
      this.#length = length;
      if (last) this.#tell(this.#buffer.subarray(0, length));
      else this.#deadline ??= setTimeout(() => this.#refuse(new ApiError('body_too_slow')), this.#bodies.maxReadMs);
    }
  }

  /** Nothing was admitted, so the call has cost nothing. */
  onCallerGone(): void {
    this.#end();
  }

  onCallerWritable(): void {}

  /** @returns false if all messages together would take too much */
  #makeRoom(length: number): boolean {
    const { byteLength } = this.#buffer;
    if (length <= byteLength) return true;
    const size = Math.min(Math.max(length, 2 * byteLength, FIRST_BYTES), this.#bodies.maxMessageBytes);
    if (!this.#bodies.take(size - byteLength)) return false;
    const larger = Buffer.allocUnsafeSlow(size);
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
    return true;
  }

  #tell(bytes: Uint8Array): void {
    this.#end();
    this.#listener.onBody(bytes);
  }

  #refuse(error: ApiError): void {
    this.#end();
    this.#listener.onNoBody(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#bodies.giveBack(this.#buffer.byteLength);
    this.#buffer = EMPTY;
    if (this.#deadline !== null) clearTimeout(this.#deadline);
  }
}
