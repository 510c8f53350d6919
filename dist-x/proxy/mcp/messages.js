import { MESSAGE_MARK } from '../../ledger/usage-event.js';
import { readMessage } from './message.js';
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
    #gate;
    #bodies;
    constructor(gate, bodies) {
        this.#gate = gate;
        this.#bodies = bodies;
    }
    /** The listener may be told before this returns. */
    read(head, caller, key, tools, listener) {
        if (this.#refused(key, listener))
            return;
        this.#bodies.read(head, caller, {
            onBody: (bytes) => {
                if (!this.#refused(key, listener))
                    judge(head, bytes, tools, listener);
            },
            onNoBody: (error) => listener.onNoMessage(error, null),
        });
    }
    #refused(key, listener) {
        const rate = this.#gate.emptyBucket(key);
        if (rate !== null)
            listener.onNoMessage(this.#gate.rateLimited(key, rate), rate);
        return rate !== null;
    }
}
function judge(head, bytes, tools, listener) {
    let message;
    try {
        if (bytes === null) {
            message = { terms: tools.termsOf(null), mark: markOf(head.method === 'GET' ? 'stream' : 'end'), body: null };
        }
        else {
            const { tool, method, body } = readMessage(head.headers, bytes);
            message = { terms: tools.termsOf(tool), mark: tool === null ? markOf(method ?? 'response') : '', body };
        }
    }
    catch (error) {
        listener.onNoMessage(error, null);
        return;
    }
    listener.onMessage(message);
}
/** The caller chose the text, at most `MAX_NAME_LENGTH` characters of it. A record takes printable ASCII without a tab. */
const markOf = (text) => MESSAGE_MARK + text.replace(/[^\w./-]/g, '_');
//# sourceMappingURL=messages.js.map