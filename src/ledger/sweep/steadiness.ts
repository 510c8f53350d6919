/** A silence of Redis longer than this part of the lease may have made the living look dead: they renew every 3 s of 15. */
const LONGEST_GAP = 2 / 3;

/** What a round learns from Redis: which process it is, for how long it runs, and what time it has. */
export type RedisReport = { readonly runId: string; readonly uptimeSeconds: number; readonly nowMs: number };

/**
 * Whether leases say who is alive. They do not after Redis was away (a partition, a file being loaded, a machine that
 * slept): nobody could renew, and whoever looks first would take all gateways for dead. So they count only after Redis
 * has answered without a gap for one full lease.
 *
 * All times are Redis's: it is the clock that leases are written by, and it goes on while a machine sleeps.
 */
export class Steadiness {
  readonly #leaseMs: number;
  #run: { readonly runId: string; readonly sinceMs: number; lastMs: number } | null = null;
  #uptimeMs = 0;

  constructor(leaseSeconds: number) {
    this.#leaseMs = leaseSeconds * 1000;
  }

  /** Redis did not answer: the wait begins again with its next answer. */
  lost(): void {
    this.#run = null;
  }

  /** The first answer of a round. */
  reported({ runId, uptimeSeconds, nowMs }: RedisReport): void {
    this.#uptimeMs = uptimeSeconds * 1000;
    // Another process, which may be a replica with leases of long ago, or the same one with what its file had.
    if (this.#run?.runId !== runId) this.#run = { runId, sinceMs: nowMs, lastMs: nowMs };
    this.answered(nowMs);
  }

  /** Any later answer of the round. */
  answered(nowMs: number): void {
    const run = this.#run;
    if (run === null) return;
    const gapMs = nowMs - run.lastMs;
    if (gapMs < 0 || gapMs > this.#leaseMs * LONGEST_GAP) this.#run = { ...run, sinceMs: nowMs, lastMs: nowMs };
    else run.lastMs = nowMs;
  }

  get lasting(): boolean {
    if (this.#run === null || this.#uptimeMs < this.#leaseMs) return false;
    return this.#run.lastMs - this.#run.sinceMs >= this.#leaseMs;
  }
}
