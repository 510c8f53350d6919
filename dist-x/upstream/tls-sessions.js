/** Sessions kept at once. At the bound, the oldest is dropped: a new connection to its origin needs a full handshake. */
const MAX_SESSIONS = 256;
/**
 * The latest TLS session of each origin. Resuming it saves a round trip and most of the CPU of a handshake.
 *
 * Sessions are kept by origin because Node does not check the certificate of a resumed session against the host's name. So a
 * session may only be resumed for the name for which it was made.
 */
export class TlsSessions {
    #sessions = new Map();
    get(originKey) {
        return this.#sessions.get(originKey);
    }
    keep(originKey, session) {
        this.#sessions.delete(originKey);
        this.#sessions.set(originKey, session);
        if (this.#sessions.size > MAX_SESSIONS)
            this.#sessions.delete(this.#sessions.keys().next().value);
    }
    forget(originKey) {
        this.#sessions.delete(originKey);
    }
}
//# sourceMappingURL=tls-sessions.js.map