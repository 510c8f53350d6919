import type { Command } from './commands.ts';

/**
 * How long a settlement waits before it is sent again; doubled each time Redis still does not answer. Without callers nothing
 * else finds out that Redis answers in time again, and within 2 s all is to be as before.
 */
const FIRST_MS = 200;
const LONGEST_MS = 1_000;
export type RetryPort = {
  /** Whether anything can be sent at all. */
  readonly connected: () => boolean;
  /** Whether the last trip had no reply. */
  readonly suspect: () => boolean;
  /** Sent at a time to find out whether Redis answers, while it is not known to. */
  readonly probe: number;
  readonly send: (command: Command) => void;
};

/**
 * Settlements and cancellations that had no reply, until they have one: each counts once, however often it arrives. While
 * Redis is silent one batch at a time is sent, less and less often, so that a Redis that wakes up finds a handful of
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

  /** Redis answers: all that waits goes now. */
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
