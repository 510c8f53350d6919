import type { Command } from './commands.ts';
import { SettlementRetries } from './settlement-retries.ts';

/** Settlements sent at once to a refusing shard. One shows whether it works again: all of them write to the same two keys. */
const PROBE = 1;

type Port = {
  /** Whether Redis is connected, so that anything can be sent at all. */
  readonly connected: () => boolean;
  readonly send: (command: Command) => void;
};

type Shard = { isRefusing: boolean; commands: number; readonly retries: SettlementRetries };

/**
 * Settlements and cancellations that Redis refuses, because the hash of holds or the stream of their shard is damaged. About once
 * a second one settlement of each such shard is sent again; when Redis accepts it, the others of the shard follow.
 *
 * Bounded: no call of such a shard is admitted meanwhile, so a shard never has more refused settlements than it had calls under
 * way.
 *
 * Tested by test/admission/damage.test.ts.
 */
export class RefusedSettlements {
  readonly #port: Port;
  /** The shards of which refused commands are still waiting. */
  readonly #shards = new Map<number, Shard>();
  #commands = 0;

  constructor(port: Port) {
    this.#port = port;
  }

  /** Commands, over all shards, that Redis has refused and not accepted since. */
  get commands(): number {
    return this.#commands;
  }

  /** Whether Redis refused the last settlement of the shard. */
  isRefusing(shard: number): boolean {
    return this.#shards.get(shard)?.isRefusing ?? false;
  }

  /** @param isFirst the command was not refused before */
  add(command: Command, shard: number, isFirst: boolean): void {
    const refusing = this.#shards.get(shard) ?? this.#newShard(shard);
    refusing.isRefusing = true;
    if (isFirst) {
      refusing.commands++;
      this.#commands++;
    }
    refusing.retries.add(command);
  }

  /** Redis has accepted a command that it had refused: the others of its shard are sent now. */
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
