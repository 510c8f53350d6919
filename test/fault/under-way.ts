// What a schedule is at, for the report of one that does not end.

export class UnderWay {
  readonly #begun = new Map<symbol, { readonly what: string; readonly since: number }>();

  /** Does something, and is able to tell meanwhile that it is under way. */
  async of<T>(what: string, work: Promise<T> | (() => Promise<T>)): Promise<T> {
    const id = Symbol(what);
    this.#begun.set(id, { what, since: performance.now() });
    try {
      return await (typeof work === 'function' ? work() : work);
    } finally {
      this.#begun.delete(id);
    }
  }

  describe(): string {
    const now = performance.now();
    return [...this.#begun.values()].map(({ what, since }) => `${what}, for ${Math.round(now - since)} ms`).join('; ');
  }
}
