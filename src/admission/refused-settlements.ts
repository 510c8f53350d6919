import type { Command } from './commands.ts';
import { SettlementRetries } from './settlement-retries.ts';

/**
 * How many settlements are sent at a time to a shard that refuses them. One suffices to show whether the shard works again: all
 * settlements of a shard write to the same two keys.
 */
const PROBE = 1;

type Port = {
  /** Whether Redis is connected. Nothing is sent while it is not. */
  readonly connected: () => boolean;
  readonly send: (command: Command) => void;
};

type Shard = { isRefusing: boolean; commands: number; readonly retries: SettlementRetries };

/**
 * Settlements and cancellations that Redis refuses, because the hash of holds or the stream of their shard is damaged. About once
 * a second, one settlement of each such shard is sent again. When Redis accepts it, the others of the shard are sent.
 *
 * Bounded: while a shard refuses settlements, none of its calls is admitted. So a shard never has more refused settlements than
 * it had calls under way.
 *
 * Tested by test/admission/damage.test.ts.
 */
export class RefusedSettlements {
  readonly #port: Port;
  /** The shards that have refused commands which wait to be sent again. */
  readonly #shards = new Map<number, Shard>();
  #commands = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** Number of commands of all shards that Redis has refused and has not accepted since. */
  get commands(): number {
    return this.#commands;
  }

  /** Whether the shard refuses settlements: true from a refusal until Redis accepts a command that it had refused. */
  isRefusing(shard: number): boolean {
    return this.#shards.get(shard)?.isRefusing ?? false;
  }

  /** Keeps a refused command, to send it again. @param isFirst true when it was not refused before */
  add(command: Command, shard: number, isFirst: boolean): void {
    const refusing = this.#shards.get(shard) ?? this.#newShard(shard);
    refusing.isRefusing = true;
    if (isFirst) {
      refusing.commands++;
      this.#commands++;
    }
    refusing.retries.add(command);
  }

  /** Call this when Redis has accepted a command that it had refused: it sends the shard's other refused commands again at once. */
  accepted(shard: number): void {
    const refusing = this.#shards.get(shard);
    if (refusing === undefined) return;
    this.#commands--;
    if (--refusing.commands === 0) this.#shards.delete(shard);
    refusing.isRefusing = false;
    refusing.retries.hurry();
  }

  stop(): void {
    for (const { retries } of this.#shards.values()) retries.stop();
  }

  #newShard(shard: number): Shard {
    const refusing: Shard = {
      isRefusing: true,
      commands: 0,
      retries: new SettlementRetries({ ...this.#port, suspect: () => refusing.isRefusing, probe: PROBE }),
    };
    this.#shards.set(shard, refusing);
    return refusing;
  }
}
