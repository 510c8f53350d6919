import type { Operation } from './commands.ts';
import { SettlementRetries } from './settlement-retries.ts';

/** One operation finds out whether the shard works again: all of them need the same two keys. */
const PROBE = 1;

type Port = {
  /** Whether anything can be sent at all. */
  readonly connected: () => boolean;
  readonly send: (operation: Operation) => void;
};

type Shard = { isRefusing: boolean; operations: number; readonly retries: SettlementRetries };

/**
 * Settlements and cancellations that Redis refuses, because the hash of holds or the stream of their shard is damaged. One of
 * each shard is sent about once a second; when it is through, the others of that shard follow.
 *
 * No call of such a shard is admitted meanwhile, as it could not be settled: so a shard never has more of these than it had
 * calls under way.
 */
export class RefusedSettlements {
  readonly #port: Port;
  /** Those with operations that were refused and are not through. */
  readonly #shards = new Map<number, Shard>();
  #operations = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** Operations that were refused and are not through, of all shards. */
  get operations(): number {
    return this.#operations;
  }

  /** Whether the last settlement of the shard was refused. */
  isRefusing(shard: number): boolean {
    return this.#shards.get(shard)?.isRefusing ?? false;
  }

  /** @param isFirst it was not refused before */
  add(operation: Operation, shard: number, isFirst: boolean): void {
    const of = this.#shards.get(shard) ?? this.#newShard(shard);
    of.isRefusing = true;
    if (isFirst) {
      of.operations++;
      this.#operations++;
    }
    of.retries.add(operation);
  }

  /** An operation that was refused is through: the others of its shard are sent now. */
  through(shard: number): void {
    const of = this.#shards.get(shard);
    if (of === undefined) return;
    this.#operations--;
    if (--of.operations === 0) this.#shards.delete(shard);
    of.isRefusing = false;
    of.retries.hurry();
  }

  stop(): void {
    for (const { retries } of this.#shards.values()) retries.stop();
  }

  #newShard(shard: number): Shard {
    const of: Shard = {
      isRefusing: true,
      operations: 0,
      retries: new SettlementRetries({ ...this.#port, suspect: () => of.isRefusing, probe: PROBE }),
    };
    this.#shards.set(shard, of);
    return of;
  }
}
