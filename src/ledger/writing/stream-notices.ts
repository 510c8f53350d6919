type Log = { error(fields: object, message: string): void };

/** Logs what the writer leaves in Redis: events of a newer version, and damaged streams. One line per shard and kind. */
export class StreamNotices {
  readonly #log: Log;
  /** Number of events of a newer version by shard, at the last look. */
  readonly #newer = new Map<number, number>();
  readonly #damaged = new Set<number>();

  constructor(log: Log) {
    this.#log = log;
  }

  /** Number of events of a newer version that the last look left in the streams. */
  get newerEvents(): number {
    return Array.from(this.#newer.values()).reduce((sum, events) => sum + events, 0);
  }

  /** Notes how many events of a newer version the shard's stream has. They stay there: a newer writer will store them. */
  newer(shard: number, events: number): void {
    if (!this.#newer.has(shard)) {
      if (events === 0) return;
      const message = 'usage events of a newer version wait in the stream: a writer of that version has to store them';
      this.#log.error({ shard, events }, message);
    }
    this.#newer.set(shard, events);
  }

  looked(shard: number, isDamaged: boolean): void {
    if (isDamaged === this.#damaged.has(shard)) return;
    if (!isDamaged) {
      this.#damaged.delete(shard);
      return;
    }
    this.#damaged.add(shard);
    this.#log.error(
      { shard },
      'the key of a usage stream in redis is not a stream: the calls of its shard cannot be settled',
    );
  }
}
