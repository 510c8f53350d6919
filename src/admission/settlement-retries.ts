import type { Command } from './commands.ts';

/**
 * Pause before unanswered settlements are sent again. The pause doubles, up to LONGEST_MS, each time Redis still does not answer.
 * Without calls, these retries are the first to notice that Redis answers again (leases are renewed only every 3 s); with a longest
 * pause of 1 s, normal operation resumes within 2 s of that.
 */
const FIRST_MS = 200;
const LONGEST_MS = 1_000;

type RetryPort = {
  /** Whether Redis is connected. Nothing is sent while it is not. */
  readonly connected: () => boolean;
  /** True while a command would probably fail again: the last trip had no reply, or the shard refuses settlements. */
  readonly suspect: () => boolean;
  /** How many commands are sent at a time while `suspect` is true, to find out whether Redis accepts them again. */
  readonly probe: number;
  readonly send: (command: Command) => void;
};

/**
 * Settlements and cancellations that had no reply. Each is sent again until it gets one, and counts once, however often it arrives.
 * While Redis is silent, only one batch is sent after each pause, and the pauses grow. So a Redis that wakes up finds a few batches
 * of duplicates, and not each unanswered command many times.
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

  /** Call this when Redis answers again: it sends all waiting commands now. */
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
