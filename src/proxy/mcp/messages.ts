import type { CallTerms } from '../../admission/call-terms.ts';
import type { RateState } from '../../admission/codes.ts';
import type { CallerStream, RequestHead } from '../../gate/caller-io.ts';
import type { Gate } from '../../gate/gate.ts';
import type { KeyRecord } from '../../keys/caller.ts';
import { readMessage } from './message.ts';
import type { MessageBodies } from './message-bodies.ts';
import type { PricedTools } from './priced-tools.ts';

/** What the call of an MCP server costs, and the body that the service gets; null for a request without one (GET, DELETE). */
export type PricedMessage = { readonly terms: CallTerms; readonly body: Buffer | null };

/** Is told once what became of a message, unless the caller leaves first: then nobody is left to answer. */
export interface MessageListener {
  onMessage(message: PricedMessage): void;
  /** @param rate  the state of the caller's bucket, if the caller is refused because it is empty; otherwise null */
  onNoMessage(error: unknown, rate: RateState | null): void;
}

/**
 * Reads the messages that callers send to MCP servers, and says what each costs.
 *
 * A message is read and parsed before Redis can take a token for it. So a caller that is known to have no token is refused from
 * memory, before the message is read and again before it is parsed. Otherwise it could have megabytes parsed for nothing. What
 * remains is what a caller has under way at the moment when its bucket turns out to be empty.
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

function judge(head: RequestHead, bytes: Uint8Array | null, tools: PricedTools, listener: MessageListener): void {
  let message: PricedMessage;
  try {
    const { tool, body } = bytes === null ? { tool: null, body: null } : readMessage(head.headers, bytes);
    message = { terms: tools.termsOf(tool), body };
  } catch (error) {
    listener.onNoMessage(error, null);
    return;
  }
  listener.onMessage(message);
}
