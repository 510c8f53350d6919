import type { CallTerms } from '../../admission/call-terms.ts';
import type { RateState } from '../../admission/codes.ts';
import type { CallerStream, RequestHead } from '../../gate/caller-io.ts';
import type { Gate } from '../../gate/gate.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import { MESSAGE_MARK } from '../../ledger/usage-event.ts';
import { BodyDigest, idempotencyKeyIn } from '../../replay/idempotency-key.ts';
import { type Message, readMessage } from './message.ts';
import type { MessageBodies } from './message-bodies.ts';
import type { PricedTools } from './priced-tools.ts';

export type ReadMessage = {
  /** The message that the service gets. */
  readonly body: Buffer;
  /** The digest of the message that its caller sent. Null: the call has no idempotency key. */
  readonly digest: string | null;
};

export type PricedMessage = {
  /** What the call of the MCP server costs. */
  readonly terms: CallTerms;
  /** What its record appends to the path: empty if a tool is called, otherwise `#` and the kind of free message. */
  readonly mark: string;
  /** Null for a request without one (GET, DELETE). */
  readonly message: ReadMessage | null;
};

/** Called once with the way the reading of a message ended, unless the caller leaves first: then nobody is left to answer. */
export interface MessageListener {
  onMessage(message: PricedMessage): void;
  /** The message calls a tool that the listing does not offer. */
  onNoTool(error: unknown, message: ReadMessage): void;
  /** @param rate  the state of the caller's bucket, if the caller is refused because it is empty; otherwise null */
  onNoMessage(error: unknown, rate: RateState | null): void;
}

/**
 * Reads the messages that callers send to MCP servers, and says what each costs.
 *
 * A message is read and parsed before Redis can take a token for it. So a caller that is known to have no token is refused from
 * memory, before the message is read and again before it is parsed. Otherwise it could have megabytes parsed for nothing. Only the
 * messages that a caller has under way when its bucket becomes empty are parsed for nothing.
 *
 * Tested by test/integration/mcp-refusals.test.ts.
 */
export class Messages {
  readonly #gate: Gate;
  readonly #bodies: MessageBodies;

  constructor(gate: Gate, bodies: MessageBodies) {
    this.#gate = gate;
    this.#bodies = bodies;
  }

  /** The listener may be told before this returns. */
  read(head: RequestHead, caller: CallerStream, key: KeyRecord, tools: PricedTools, listener: MessageListener): void {
    if (this.#refused(key, listener)) return;
    this.#bodies.read(head, caller, {
      onBody: (bytes) => {
        if (!this.#refused(key, listener)) judge(head, bytes, tools, listener);
      },
      onNoBody: (error) => listener.onNoMessage(error, null),
    });
  }

  #refused(key: KeyRecord, listener: MessageListener): boolean {
    const rate = this.#gate.emptyBucket(key);
    if (rate !== null) listener.onNoMessage(this.#gate.rateLimited(key, rate), rate);
    return rate !== null;
  }
}

function judge(
  { method, headers }: RequestHead,
  bytes: Uint8Array | null,
  tools: PricedTools,
  listener: MessageListener,
): void {
  if (bytes === null) {
    const mark = markOf(method === 'GET' ? 'stream' : 'end');
    listener.onMessage({ terms: tools.termsOf(null), mark, message: null });
    return;
  }
  let read: Message;
  try {
    read = readMessage(headers, bytes);
  } catch (error) {
    listener.onNoMessage(error, null);
    return;
  }
  const message = { body: read.body, digest: idempotencyKeyIn(headers) === null ? null : BodyDigest.of(bytes) };
  let terms: CallTerms;
  try {
    terms = tools.termsOf(read.tool);
  } catch (error) {
    listener.onNoTool(error, message);
    return;
  }
  listener.onMessage({ terms, mark: read.tool === null ? markOf(read.method ?? 'response') : '', message });
}

/** A caller's text, of at most `MAX_NAME_LENGTH` characters, made fit for a record, which takes printable ASCII without a tab. */
const markOf = (text: string): string => MESSAGE_MARK + text.replace(/[^\w./-]/g, '_');
