/**
 * What can be damaged in Redis (an operator's typo, another program's write) so that an operation answers for itself: the wallet
 * of an account; a hold, which may also be of a newer version; the hash of holds or the stream of a whole shard.
 */
export type Damage = 'wallet' | 'hold' | 'shard';

type Log = { warn(fields: object, message: string): void };

/** What was damaged says so once in an hour: its caller may try 300 times a minute. */
const SILENT_MS = 3_600_000;
/** Damaged things that are remembered. With more of them the oldest is forgotten, and may be logged again. */
const MAX_REMEMBERED = 1_000;

const MESSAGES: Record<Damage, string> = {
  wallet:
    'the wallet of an account is damaged in redis: calls that need the damaged value are refused until an operator repairs it, see README',
  hold: 'an open hold is damaged in redis or of a newer version: it was left alone',
  shard:
    'the holds or the stream of a shard are damaged in redis: its calls cannot be settled, and new ones are refused',
};

/** Counts damaged data, with a line for each thing that is. */
export class DamageLog {
  readonly #log: Log;
  readonly #loggedAt = new Map<string, number>();
  readonly #counts = new Map<Damage, number>([
    ['wallet', 0],
    ['hold', 0],
    ['shard', 0],
  ]);

  constructor(log: Log) {
    this.#log = log;
  }

  /** Operations that met damaged data. */
  get counts(): ReadonlyMap<Damage, number> {
    return this.#counts;
  }

  /** It may be logged again, should it be damaged once more. */
  shardWorks(shard: number): void {
    this.#loggedAt.delete(`shard ${shard}`);
  }

  found(what: Damage, accountId: string, usageId: string, shard: number): void {
    this.#counts.set(what, (this.#counts.get(what) as number) + 1);
    const name = what === 'shard' ? `shard ${shard}` : `${what} ${what === 'wallet' ? accountId : usageId}`;
    const now = performance.now();
    if (now - (this.#loggedAt.get(name) ?? Number.NEGATIVE_INFINITY) < SILENT_MS) return;
    this.#loggedAt.delete(name);
    this.#loggedAt.set(name, now);
    if (this.#loggedAt.size > MAX_REMEMBERED) this.#loggedAt.delete(this.#loggedAt.keys().next().value as string);
    this.#log.warn({ shard, account_id: accountId, usage_id: usageId }, MESSAGES[what]);
  }
}
