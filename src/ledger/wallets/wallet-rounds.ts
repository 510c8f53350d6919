import type { RedisKeys } from '../../platform/redis-keys.ts';
import { overWithin } from '../../platform/timing.ts';
import { DamageLog } from '../damage-log.ts';
import { WalletDamaged } from './wallets.ts';

const STOP_MS = 2_000;

export type WalletRoundsOptions = {
  readonly everyMs: number;
  /** Makes one round. @returns what failed for single accounts; rejects if nothing could be tried */
  readonly round: () => Promise<readonly unknown[]>;
  readonly keys: RedisKeys;
  readonly log: { warn(fields: object, message: string): void; info(fields: object, message: string): void };
  /** What is logged when a round fails after one that did not, and when a round succeeds again. */
  readonly messages: { readonly failing: string; readonly again: string };
};

/** Takes money further into or out of wallets in rounds, which do not overlap, until all of it has arrived. */
export class WalletRounds {
  readonly #options: WalletRoundsOptions;
  readonly #damage: DamageLog;
  #timer: NodeJS.Timeout | null = null;
  #running: Promise<void> | null = null;
  #stopping = false;
  #failing = false;

  constructor(options: WalletRoundsOptions) {
    this.#options = options;
    this.#damage = new DamageLog(options.log);
  }

  /** Whether `stop` was called: a round under way begins nothing more. */
  get isStopping(): boolean {
    return this.#stopping;
  }

  start(): void {
    this.#stopping = false;
    this.#timer ??= setInterval(() => {
      this.#running ??= this.#run().finally(() => {
        this.#running = null;
      });
    }, this.#options.everyMs);
    this.#timer.unref();
  }

  /** Resolves when the round under way has ended, or after `timeoutMs`. */
  async stop(timeoutMs = STOP_MS): Promise<void> {
    this.#stopping = true;
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#running !== null) await overWithin(this.#running, timeoutMs);
  }

  async #run(): Promise<void> {
    const { round, keys, log, messages } = this.#options;
    try {
      for (const error of await round()) {
        // A damaged wallet fails in every round until an operator repairs it. It does not set `#failing`, because then a failure of
        // another account would not be logged.
        if (!(error instanceof WalletDamaged)) throw error;
        this.#damage.found('wallet', error.accountId, '', keys.shardOf(error.accountId));
      }
      if (this.#failing) log.info({}, messages.again);
      this.#failing = false;
    } catch (error) {
      if (!this.#failing) log.warn({ err: error }, messages.failing);
      this.#failing = true;
    }
  }
}
