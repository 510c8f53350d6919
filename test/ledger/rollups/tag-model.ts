import { MAX_TAGS, OTHER_TAG } from '../../../src/ledger/rollups/tag-sums.ts';
import { chargedMicros, isCounted, type UsageEvent } from '../../../src/ledger/usage-event.ts';
import type { Sql } from '../../../src/platform/postgres.ts';

type Sums = { calls: number; freeCalls: number; spent: number; latencySumUs: number; latencyCount: number };

const dayOf = ({ admittedAtMs }: UsageEvent): string => new Date(admittedAtMs).toISOString().slice(0, 10);

/** Which tags have sums, and these, as one reader of all calls in the order of their streams would say. */
export class TagModel {
  /** The tags that have sums, by account and month. */
  readonly #tags = new Map<string, Set<string>>();
  /** By account, day and tag. */
  readonly #sums: Record<string, Sums> = {};

  tagsOf(accountId: string, month: string): Set<string> {
    const name = `${accountId} ${month.slice(0, 7)}`;
    const tags = this.#tags.get(name) ?? new Set();
    this.#tags.set(name, tags);
    return tags;
  }

  /** Adds a call that comes for the first time. */
  add(event: UsageEvent): void {
    const amount = chargedMicros(event);
    if (event.tag === null || !isCounted(event, amount)) return;
    const day = dayOf(event);
    const tags = this.tagsOf(event.accountId, day);
    if (event.tag !== OTHER_TAG && tags.size < MAX_TAGS) tags.add(event.tag);
    const name = `${event.accountId} ${day} ${tags.has(event.tag) ? event.tag : OTHER_TAG}`;
    const sums = this.#sums[name] ?? { calls: 0, freeCalls: 0, spent: 0, latencySumUs: 0, latencyCount: 0 };
    this.#sums[name] = sums;
    sums.calls++;
    if (event.freeTier && event.outcome === 'completed') sums.freeCalls++;
    sums.spent += amount;
    sums.latencySumUs += event.latencyUs;
    if (event.latencyUs > 0) sums.latencyCount++;
  }

  sums(): Record<string, Sums> {
    return this.#sums;
  }

  /** What Postgres says, in the form of `sums`. */
  async read(sql: Sql): Promise<Record<string, Sums>> {
    const rows = await sql<(Sums & { name: string })[]>`
      SELECT account_id || ' ' || day || ' ' || tag AS name, calls, free_calls AS "freeCalls", spent,
             latency_sum_us AS "latencySumUs", latency_count AS "latencyCount" FROM tag_days`;
    return Object.fromEntries(rows.map(({ name, ...sums }) => [name, sums]));
  }
}

/** Lets tags of the month have sums already. */
export async function fillMonth(
  sql: Sql,
  model: TagModel,
  accountId: string,
  month: string,
  count: number,
): Promise<void> {
  for (let i = 0; i < count; i++) model.tagsOf(accountId, month).add(`taken-${i}`);
  await sql`
    INSERT INTO tag_months (account_id, month, tag)
    SELECT ${accountId}, ${month}, 'taken-' || i FROM generate_series(0, ${count}::int - 1) AS i`;
}
