import type { Command } from './commands.ts';
import { SettlementRetries } from './settlement-retries.ts';

/** One command finds out whether the shard works again: all of them need the same two keys. */
const PROBE = 1;

type Port = {
  /** Whether anything can be sent at all. */
  readonly connected: () => boolean;
  readonly send: (command: Command) => void;
};

type Shard = { isRefusing: boolean; commands: number; readonly retries: SettlementRetries };

/**
 * Settlements and cancellations that Redis refuses, because the hash of holds or the stream of their shard is damaged. One of
 * each shard is sent about once a second; when it is through, the others of that shard follow.
 *
 * No call of such a shard is admitted meanwhile, as it could not be settled: so a shard never has more of these than it had
 * calls under way.
 */
export class RefusedSettlements {
  readonly #port: Port;
  /** Those with commands that were refused and are not through. */
  readonly #shards = new Map<number, Shard>();
  #commands = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** Commands that were refused and are not through, of all shards. */
  get commands(): number {
    return this.#commands;
  }

  /** Whether the last settlement of the shard was refused. */
  isRefusing(shard: number): boolean {
    return this.#shards.get(shard)?.isRefusing ?? false;
  }

  /** @param isFirst it was not refused before */
  add(command: Command, shard: number, isFirst: boolean): void {
    const of = this.#shards.get(shard) ?? this.#newShard(shard);
    of.isRefusing = true;
    if (isFirst) {
      of.commands++;
      this.#commands++;
    }
    of.retries.add(command);
  }

  /** A command that was refused is through: the others of its shard are sent now. */
  through(shard: number): void {
    const of = this.#shards.get(shard);
    if (of === undefined) return;
    this.#commands--;
    if (--of.commands === 0) this.#shards.delete(shard);
    of.isRefusing = false;
    of.retries.hurry();
  }

  stop(): void {
    for (const { retries } of this.#shards.values()) retries.stop();
  }

  #newShard(shard: number): Shard {
    const of: Shard = {
      isRefusing: true,
      commands: 0,
      retries: new SettlementRetries({ ...this.#port, suspect: () => of.isRefusing, probe: PROBE }),
    };
    this.#shards.set(shard, of);
    return of;
  }
}
