const MAX_SESSIONS = 256;

/**
 * The latest TLS session of each origin, for resumption: 1 round trip and most of the CPU of a handshake less.
 * Keyed by origin because Node checks a resumed session's certificate against no name: it must be the name it was made for.
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
