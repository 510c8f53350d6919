// What a failover may lose. Redis passes writes on to a replica without waiting for it, so what a master acknowledged in its last
// moments may be gone when its replica takes over (docs/guarantees.md). Each fault says for which shards, and from when to when.

import { AHEAD_MS, isAhead } from './clocks/clocks.ts';

/** The shards of one master, and the time in which its acknowledged writes may be lost. Times as of `Date.now()`. */
type Window = {
  readonly group: number;
  readonly shards: ReadonlySet<number>;
  readonly fromMs: number;
  readonly toMs: number;
  readonly why: string;
  /** Everything that was written before is lost, too. */
  readonly isAll?: boolean;
};

/** A call, or what is known of it. */
type Span = {
  readonly shard: number;
  readonly fromMs: number;
  readonly toMs: number;
  readonly usageId?: string | undefined;
};

/**
 * How long before a master's end what it acknowledged may still be on its way to the replica. All programs share one busy machine, and
 * the proxies between the nodes are in the test's own process, which has pauses.
 */
export const ON_ITS_WAY_MS = 100;
/** From the end of a response to its settlement in Redis: up to 20 ms of waiting, and a trip. */
export const SETTLING_MS = 300;

export class Losses {
  readonly #windows: Window[] = [];
  readonly #writes: { readonly group: number; readonly usageIds: ReadonlySet<string> }[] = [];
  readonly #replaced = new Set<number>();
  readonly #mayLose: boolean;

  /** @param mayLose  false: whatever fails, nothing may be lost */
  constructor(mayLose: boolean) {
    this.#mayLose = mayLose;
  }

  add(window: Window): void {
    this.#windows.push(window);
  }

  /**
   * The master of a group wrote something of these calls, and that may be lost. Each may have ended long before: its settlement waits
   * while its shard has no master, and is sent again until it has a reply.
   */
  addWrites(group: number, usageIds: Iterable<string>): void {
    this.#writes.push({ group, usageIds: new Set(usageIds) });
  }

  /** What may be lost and when, for the report of a failure. */
  describe(): string[] {
    const time = (ms: number): string => new Date(ms).toISOString().slice(14, 23);
    return this.#windows.map(({ why, fromMs, toMs }) => `${why}: from ${time(fromMs)} to ${time(toMs)} may be lost`);
  }

  /** The master of a group is another one than before. Without that, nothing may be lost. */
  replaced(group: number): void {
    this.#replaced.add(group);
  }

  /** Whether a write of this call may have been acknowledged and lost. */
  allow(call: Span): boolean {
    return this.#mayLose && this.mayVanish(call);
  }

  /** Whether a hold of this call may have been seen and lost. Where writes wait for a replica, it was not acknowledged. */
  mayVanish({ shard, fromMs, toMs, usageId }: Span): boolean {
    const isWritten =
      usageId !== undefined &&
      this.#writes.some(({ group, usageIds }) => this.#replaced.has(group) && usageIds.has(usageId));
    return (
      isWritten ||
      this.#windows.some(
        (window) =>
          this.#replaced.has(window.group) &&
          window.shards.has(shard) &&
          fromMs <= window.toMs &&
          toMs + SETTLING_MS >= window.fromMs,
      )
    );
  }

  /** Whether Redis may have lost what it kept of this call after its end: as a write of it, or with everything else. */
  mayForget(call: Span): boolean {
    const { shard, fromMs } = call;
    const isLost = this.#windows.some(
      ({ shards, toMs, isAll = false }) => isAll && shards.has(shard) && fromMs <= toMs,
    );
    return isLost || this.allow(call);
  }

  /** Whether what the shard's master had acknowledged may be lost: its wallets are then repaired, so that they are what Postgres has. */
  mayHaveLost(shard: number): boolean {
    return this.#mayLose && this.concern(shard);
  }

  /** Whether the shard has another master than before, which may have been without some writes. */
  concern(shard: number): boolean {
    return this.#windows.some(({ group, shards }) => this.#replaced.has(group) && shards.has(shard));
  }
}

/** The time in a usage id (UUIDv7). */
const stampOf = (usageId: string): number => Number.parseInt(usageId.replaceAll('-', '').slice(0, 12), 16);

/** Whether the clock of its gateway was ahead when the call was admitted. */
export const isOfWrongClock = (usageId: string): boolean => isAhead(stampOf(usageId));

/** When the call was admitted. */
export const timeOf = (usageId: string): number => stampOf(usageId) - (isOfWrongClock(usageId) ? AHEAD_MS : 0);

/** Whether some of the amounts add up to the sum. */
export function isSumOf(sum: number, amounts: readonly number[]): boolean {
  let sums = new Set([0]);
  for (const amount of amounts)
    sums = new Set([...sums, ...Array.from(sums, (one) => one + amount)].filter((one) => one <= sum));
  return sums.has(sum);
}
