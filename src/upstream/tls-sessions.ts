/** Maximum sessions kept. Beyond it, the oldest is dropped: a new connection to its origin needs a full handshake. */
const MAX_SESSIONS = 256;

/**
 * The latest TLS session of each origin. Resuming it saves a round trip and most of the CPU of a handshake.
 *
 * Sessions are kept by origin because Node does not check the certificate of a resumed session against the host's name. So a
 * session may only be resumed for the name for which it was made.
 */
export class TlsSessions {
  readonly #sessions = new Map<string, Buffer>();

  get(originKey: string): Buffer | undefined {
    return this.#sessions.get(originKey);
  }

  keep(originKey: string, session: Buffer): void {
    this.#sessions.delete(originKey);
    this.#sessions.set(originKey, session);
    if (this.#sessions.size > MAX_SESSIONS) this.#sessions.delete(this.#sessions.keys().next().value as string);
  }

  forget(originKey: string): void {
    this.#sessions.delete(originKey);
  }
}
