/**
 * If Redis was silent for longer than this part of the lease, leases of living gateways may have run out. Gateways renew every
 * 3 s of a lease of 15 s.
 */
const LONGEST_GAP = 2 / 3;

/** What the sweeper learns from Redis in a round: which process answers, for how long it has run, and its time. */
export type RedisReport = { readonly runId: string; readonly uptimeSeconds: number; readonly nowMs: number };

/**
 * Decides whether a lease that has run out means that its gateway is dead. It does not mean that just after Redis was away (a
 * partition, a file being loaded, a machine that slept): no gateway could renew its lease, so all would look dead. So leases count
 * only after Redis has answered for one full lease, with no gap longer than LONGEST_GAP of it.
 *
 * All times are read from Redis's clock: leases are written by that clock, and it goes on while a machine sleeps.
 */
export class Steadiness {
  readonly #leaseMs: number;
  #run: { readonly runId: string; readonly sinceMs: number; lastMs: number } | null = null;
  #uptimeMs = 0;

  constructor(leaseSeconds: number) {
    this.#leaseMs = leaseSeconds * 1000;
  }

  /** Redis did not answer: the full lease is counted again from its next answer. */
  lost(): void {
    this.#run = null;
  }

  /** The first answer of a round. */
  reported({ runId, uptimeSeconds, nowMs }: RedisReport): void {
    this.#uptimeMs = uptimeSeconds * 1000;
    // Another process answers: a replica, perhaps with old leases, or a restarted Redis with the leases in its file.
    if (this.#run?.runId !== runId) this.#run = { runId, sinceMs: nowMs, lastMs: nowMs };
    this.answered(nowMs);
  }

  /** A later answer of the same round. */
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
