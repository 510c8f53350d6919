// What a Postgres that was given up took along: exactly what it had, and the one that stays has not.

import { askPostgres, type PostgresPair } from './postgres-pair.ts';

/** What a Postgres knows of the accounts of a schedule. */
type Known = {
  /** Usage id to amount. */
  readonly calls: ReadonlyMap<string, number>;
  /** References of credits, and of debits that were taken. */
  readonly moves: ReadonlySet<string>;
};

export function readKnown({ primary }: Pick<PostgresPair, 'primary'>, accountIds: readonly string[]): Promise<Known> {
  return askPostgres(primary, async (sql) => {
    const calls = await sql<{ id: string; amount: string }[]>`
      SELECT usage_id AS id, amount FROM calls WHERE account_id = ANY(${accountIds}::uuid[])`;
    const moves = await sql<{ reference: string }[]>`
      SELECT reference FROM credits WHERE account_id = ANY(${accountIds}::uuid[])
      UNION ALL SELECT reference FROM debits WHERE account_id = ANY(${accountIds}::uuid[]) AND state = 'taken'`;
    return {
      calls: new Map(calls.map(({ id, amount }) => [id, Number(amount)])),
      moves: new Set(moves.map(({ reference }) => reference)),
    };
  });
}

export class GivenUp {
  readonly calls = new Set<string>();
  readonly moves = new Set<string>();
  /** What a Postgres lacked for a while, so that wallets that were loaded then were wrong. */
  readonly absentCalls = new Set<string>();
  readonly absentMoves = new Set<string>();
  /** Every call that a Postgres was seen to have: usage id to amount. */
  readonly #seen = new Map<string, number>();

  /** To be called with what a Postgres has while it is used. */
  saw({ calls }: Known): void {
    for (const [id, amount] of calls) this.#seen.set(id, amount);
  }

  /** From now on another Postgres is asked than the one that had this. */
  replaced(former: Known, present: Known): void {
    this.saw(former);
    const { calls, moves } = difference(former, present);
    for (const id of calls) this.absentCalls.add(id);
    for (const reference of moves) this.absentMoves.add(reference);
  }

  /** Nothing of `former` will ever count but what `present` has too. */
  giveUp(former: Known, present: Known): void {
    const { calls, moves } = difference(former, present);
    for (const id of calls) this.calls.add(id);
    for (const reference of moves) this.moves.add(reference);
  }

  /** Calls that Postgres had and has not, or has otherwise, although no Postgres that had them was given up. */
  missing(rows: ReadonlyMap<string, number>): string[] {
    return Array.from(this.#seen)
      .filter(([id, amount]) => !this.calls.has(id) && rows.get(id) !== amount)
      .map(([id, amount]) => `${id} was stored with ${amount}, and is now ${rows.get(id) ?? 'gone'}`);
  }
}

const difference = (former: Known, present: Known) => ({
  calls: [...former.calls.keys()].filter((id) => !present.calls.has(id)),
  moves: [...former.moves].filter((reference) => !present.moves.has(reference)),
});
