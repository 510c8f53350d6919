/**
 * Longest silence of Redis, as a share of the lease, after which leases still count. A gateway renews its lease every 3 s. So after
 * 10 s of silence its lease is at most 13 s old, and has not run out if it lasts 15 s (the default).
 */
export const LONGEST_GAP = 2 / 3;

/** What the sweeper learns from Redis in a round: which Redis answers (`dataId` of `RedisRun`), and its time. */
type RedisReport = { readonly dataId: string; readonly nowMs: number };

/**
 * Decides whether an expired lease proves that its gateway is dead. Just after Redis was away (a partition, a file being loaded, a
 * machine that slept) it does not: no gateway could renew its lease, so all would look dead. So expired leases count only after
 * Redis has answered for a full lease time without a gap longer than LONGEST_GAP of that time.
 *
 * All times are Redis's: leases are written by Redis's clock, and that clock goes on while a machine sleeps. Its uptime is not
 * used: a Redis that started while its clock was ahead reports for that long that it has not started yet.
 */
export class Steadiness {
  readonly #leaseMs: number;
  #run: { readonly dataId: string; readonly sinceMs: number; lastMs: number } | null = null;

  constructor(leaseSeconds: number) {
    this.#leaseMs = leaseSeconds * 1000;
  }

  /** Redis did not answer, or a round failed: the full lease time is counted again from Redis's next answer. */
  lost(): void {
    this.#run = null;
  }

  /** What Redis said at the beginning of a round. */
  reported({ dataId, nowMs }: RedisReport): void {
    const run = this.#run;
    const gapMs = nowMs - (run?.lastMs ?? nowMs);
    // A different Redis answers, and its leases may be old: a replica, or a restarted Redis with the leases of its file.
    const isOther = run?.dataId !== dataId;
    if (run === null || isOther || gapMs < 0 || gapMs > this.#leaseMs * LONGEST_GAP)
      this.#run = { dataId, sinceMs: nowMs, lastMs: nowMs };
    else run.lastMs = nowMs;
  }

  get lasting(): boolean {
    return this.#run !== null && this.#run.lastMs - this.#run.sinceMs >= this.#leaseMs;
  }
}
