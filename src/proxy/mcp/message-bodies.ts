import { ApiError, tooLargeError, unavailableError } from '../../errors.ts';
import { BodyBytes } from '../../gate/body-bytes.ts';
import type { CallerEvents, CallerStream, RequestHead } from '../../gate/caller-io.ts';
import { refuseOverrides } from '../priced-operations.ts';
import { refuseEncodedBody, refuseOtherHeaders, refuseUnacceptable } from './message-headers.ts';

/**
 * Maximum bytes of a message; a longer one gets 413. The message is in memory as a whole, and judging it keeps the event loop busy.
 */
const MAX_MESSAGE_BYTES = 1_048_576;
/**
 * Maximum bytes that this process keeps for messages that are being read: 64 of the longest. Beyond it the oldest of them gets 503.
 * If the newest did, one key could keep all others out: 64 messages that never end take no token before `MAX_READ_MS` has passed.
 */
const MAX_BYTES_BEING_READ = 67_108_864;
/**
 * Maximum time that a message may take to arrive; then it gets 408. The edge cuts callers that are idle for a minute, but a caller
 * that sends a byte from time to time could keep its share of `MAX_BYTES_BEING_READ` indefinitely.
 */
const MAX_READ_MS = 30_000;

const METHODS = ['GET', 'POST', 'DELETE'];

/** Called once with the way a request's body ended, unless the caller leaves first. */
interface BodyListener {
  /** @param bytes the message, valid only until this returns; null if the request has none (GET, DELETE) */
  onBody(bytes: Uint8Array | null): void;
  onNoBody(error: unknown): void;
}

type MessageBodiesOptions = {
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
  /** Bodies that have a buffer, in the order in which they began. */
  readonly #beingRead = new Set<MessageBody>();

  constructor(options: MessageBodiesOptions = {}) {
    this.maxMessageBytes = Math.min(MAX_MESSAGE_BYTES, options.maxMessageBytes ?? MAX_MESSAGE_BYTES);
    this.#maxBytesBeingRead = options.maxBytesBeingRead ?? MAX_BYTES_BEING_READ;
    this.maxReadMs = options.maxReadMs ?? MAX_READ_MS;
  }

  /** Reads the body of one request. Tells the listener once, perhaps before this returns. */
  read(head: RequestHead, caller: CallerStream, listener: BodyListener): void {
    try {
      checkHead(head, this.maxMessageBytes);
    } catch (error) {
      listener.onNoBody(error);
      return;
    }
    if (head.method !== 'POST') listener.onBody(null);
    else {
      const body = new MessageBody(this, listener);
      caller.attach(body);
      body.startTime();
    }
  }

  get bytesBeingRead(): number {
    return this.#bytesBeingRead;
  }

  /** Refuses older bodies until there is room for this many more bytes. @returns false if `body` itself is the oldest */
  take(body: MessageBody, bytes: number): boolean {
    while (this.#bytesBeingRead + bytes > this.#maxBytesBeingRead) {
      const [oldest = body] = this.#beingRead;
      if (oldest === body) return false;
      oldest.refuse(unavailableError());
    }
    this.#bytesBeingRead += bytes;
    this.#beingRead.add(body);
    return true;
  }

  giveBack(body: MessageBody, bytes: number): void {
    this.#bytesBeingRead -= bytes;
    this.#beingRead.delete(body);
  }
}

/**
 * Checks everything that the head of a request tells. Throws the `ApiError` that the caller gets. The methods are those of
 * streamable HTTP.
 */
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
    refuseUnacceptable(headers);
  } else {
    if (bodyLength !== 0) throw new ApiError('invalid_request', `A ${method} to an MCP server must not have a body.`);
    // A GET that a framework takes for a POST could call a tool for free.
    refuseOverrides(head);
    refuseOtherHeaders(headers, null, undefined);
  }
}

/** The body of one request while it arrives. */
class MessageBody implements CallerEvents {
  readonly #bodies: MessageBodies;
  readonly #listener: BodyListener;
  readonly #bytes: BodyBytes;
  #isOver = false;
  #deadline: NodeJS.Timeout | null = null;

  constructor(bodies: MessageBodies, listener: BodyListener) {
    this.#bodies = bodies;
    this.#listener = listener;
    this.#bytes = new BodyBytes(bodies.maxMessageBytes);
  }

  onCallerBody(chunk: Uint8Array, last: boolean): void {
    if (this.#isOver) return;
    if (this.#bytes.length + chunk.length > this.#bodies.maxMessageBytes) {
      this.refuse(tooLargeError(this.#bodies.maxMessageBytes));
    } else if (last && this.#bytes.length === 0) {
      // Nearly every message arrives in one piece.
      this.#tell(chunk);
    } else if (!this.#makeRoom(chunk.length)) {
      this.refuse(unavailableError());
    } else {
      this.#bytes.add(chunk);
      if (last) this.#tell(this.#bytes.all);
    }
  }

  /** Limits the time until the message is complete. Nearly every message arrives with its head, and needs no timer. */
  startTime(): void {
    if (this.#isOver) return;
    this.#deadline = setTimeout(() => this.refuse(new ApiError('body_too_slow')), this.#bodies.maxReadMs);
  }

  /** Nothing was admitted, so the call has cost nothing. */
  onCallerGone(): void {
    this.#end();
  }

  onCallerWritable(): void {}

  /** @returns false if all messages together would take too much, and this is the oldest */
  #makeRoom(more: number): boolean {
    const growth = this.#bytes.capacityWith(more) - this.#bytes.capacity;
    return growth === 0 || this.#bodies.take(this, growth);
  }

  #tell(bytes: Uint8Array): void {
    this.#end();
    this.#listener.onBody(bytes);
  }

  /** Tells the listener, and releases the buffer. */
  refuse(error: ApiError): void {
    this.#end();
    this.#listener.onNoBody(error);
  }

  #end(): void {
    this.#isOver = true;
    this.#bodies.giveBack(this, this.#bytes.capacity);
    this.#bytes.clear();
    if (this.#deadline !== null) clearTimeout(this.#deadline);
  }
}
