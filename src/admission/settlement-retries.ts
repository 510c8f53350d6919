import type { Command } from './commands.ts';

/**
 * Pause before a settlement is sent again; doubled, up to the second value, each time Redis still does not answer. Without calls,
 * only these retries notice that Redis answers again; everything should be as before within 2 s of that.
 */
const FIRST_MS = 200;
const LONGEST_MS = 1_000;

export type RetryPort = {
  /** Whether Redis is connected, so that anything can be sent at all. */
  readonly connected: () => boolean;
  /** True while sending may be in vain: the last trip had no reply, or the shard refused the last settlement. */
  readonly suspect: () => boolean;
  /** How many commands are sent at once while `suspect` is true, to find out. */
  readonly probe: number;
  readonly send: (command: Command) => void;
};

/**
 * Settlements and cancellations that had no reply; each is sent until it gets one, and counts once, however often it arrives.
 * While Redis is silent, one batch is sent at a time, less and less often: a Redis that wakes up then finds a handful of
 * duplicates rather than thousands.
 */
export class SettlementRetries {
  readonly #port: RetryPort;
  #waiting: Command[] = [];
  #timer: NodeJS.Timeout | null = null;
  #delayMs = FIRST_MS;

  constructor(port: RetryPort) {
    this.#port = port;
  }

  add(command: Command): void {
    this.#waiting.push(command);
    this.#timer ??= setTimeout(() => this.#round(), this.#delayMs);
  }

  /** To be called when Redis answers again: sends all that wait, now. */
  hurry(): void {
    this.#delayMs = FIRST_MS;
    if (this.#waiting.length === 0) return;
    this.stop();
    this.#round();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #round(): void {
    this.#timer = null;
    const { connected, suspect, probe, send } = this.#port;
    if (suspect() || !connected()) this.#delayMs = Math.min(this.#delayMs * 2, LONGEST_MS);
    const batch = !connected() ? [] : this.#waiting.splice(0, suspect() ? probe : this.#waiting.length);
    if (this.#waiting.length > 0) this.#timer = setTimeout(() => this.#round(), this.#delayMs);
    for (const command of batch) send(command);
  }
}
