/**
 * Data in Redis that somebody damaged (an operator's typo, another program's write) and that no script repairs. `wallet`: an
 * account's wallet. `hold`: one hold, damaged or of another version. `shard`: the hash of holds or the stream of a whole shard.
 * `key`: an API key whose status this version does not know.
 */
export type Damage = 'wallet' | 'hold' | 'shard' | 'key';

type Log = { warn(fields: object, message: string): void };

/** The same damaged data is logged at most once an hour, because one key's calls may meet it 300 times a minute. */
const SILENT_MS = 3_600_000;
/** Maximum number of log lines remembered. Beyond it the oldest is forgotten: its damage may be logged twice within an hour. */
const MAX_REMEMBERED = 1_000;

const MESSAGES: Record<Damage, string> = {
  wallet:
    'the wallet of an account is damaged in redis: calls that need the damaged value are refused until an operator repairs it, see docs/operating.md',
  hold: 'an open hold in redis is damaged or of another version: it was left as it is',
  shard:
    "a shard's holds or stream are damaged in redis: its open calls cannot be settled, and its new calls are refused",
  key: 'an API key has a status in redis that this version does not know: its calls are refused',
};

/** Counts each time the gateway or the sweep meets damaged data, and logs each damaged thing. */
export class DamageLog {
  readonly #log: Log;
  readonly #loggedAt = new Map<string, number>();
  readonly #counts = new Map<Damage, number>([
    ['wallet', 0],
    ['hold', 0],
    ['shard', 0],
    ['key', 0],
  ]);

  constructor(log: Log) {
    this.#log = log;
  }

  /** How often damaged data was met, by kind. */
  get counts(): ReadonlyMap<Damage, number> {
    return this.#counts;
  }

  /** The shard is sound again. If it is damaged once more, that is logged at once. */
  shardWorks(shard: number): void {
    this.#loggedAt.delete(`shard ${shard}`);
  }

  /** @param id  the key, if a key is damaged; otherwise the call that met the damage */
  found(what: Damage, accountId: string, id: string, shard: number): void {
    this.#counts.set(what, (this.#counts.get(what) as number) + 1);
    const name = what === 'shard' ? `shard ${shard}` : `${what} ${what === 'wallet' ? accountId : id}`;
    const now = performance.now();
    if (now - (this.#loggedAt.get(name) ?? Number.NEGATIVE_INFINITY) < SILENT_MS) return;
    this.#loggedAt.delete(name);
    this.#loggedAt.set(name, now);
    if (this.#loggedAt.size > MAX_REMEMBERED) this.#loggedAt.delete(this.#loggedAt.keys().next().value as string);
    const found = what === 'key' ? { key_id: id } : { usage_id: id };
    this.#log.warn({ shard, account_id: accountId, ...found }, MESSAGES[what]);
  }
}
