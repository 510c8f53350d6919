// What a Postgres that was given up took along: exactly what it had, and the one that stays has not.

import { askPostgres, type PostgresPair } from './postgres-pair.ts';

type Amount = { readonly accountId: string; readonly micros: number };

/** What a Postgres knows of the accounts of a schedule. */
type Known = {
  /** By usage id. */
  readonly calls: ReadonlyMap<string, Amount>;
  /** Credits and refunds, and debits that were taken, by reference. */
  readonly moves: ReadonlyMap<string, Amount>;
  /** References of debits that were refused, or had only begun: the wallet may have decided them nevertheless. */
  readonly otherDebits: ReadonlySet<string>;
};

export function readKnown({ primary }: Pick<PostgresPair, 'primary'>, accountIds: readonly string[]): Promise<Known> {
  return askPostgres(primary, async (sql) => {
    const calls = await sql<{ id: string; accountId: string; micros: string }[]>`
      SELECT usage_id AS id, account_id AS "accountId", amount::text AS micros FROM calls WHERE account_id = ANY(${accountIds}::uuid[])`;
    const moves = await sql<{ reference: string; accountId: string; micros: string }[]>`
      SELECT coalesce(c.reference, r.reference) AS reference, c.account_id AS "accountId", c.amount::text AS micros
      FROM credits c LEFT JOIN refunds r ON r.account_id = c.account_id AND r.credit_seq = c.seq
      WHERE c.account_id = ANY(${accountIds}::uuid[])
      UNION ALL
      SELECT reference, account_id, (-amount)::text FROM debits WHERE account_id = ANY(${accountIds}::uuid[]) AND state = 'taken'`;
    const others = await sql<{ reference: string }[]>`
      SELECT reference FROM debits WHERE account_id = ANY(${accountIds}::uuid[]) AND state <> 'taken'`;
    return {
      otherDebits: new Set(others.map(({ reference }) => reference)),
      calls: new Map(calls.map(({ id, accountId, micros }) => [id, { accountId, micros: Number(micros) }])),
      moves: new Map(
        moves.map(({ reference, accountId, micros }) => [reference, { accountId, micros: Number(micros) }]),
      ),
    };
  });
}

export class GivenUp {
  readonly calls = new Set<string>();
  readonly moves = new Set<string>();
  /** What a Postgres lacked for a while, so that wallets that were loaded then were wrong. */
  readonly absentCalls = new Set<string>();
  readonly absentMoves = new Set<string>();
  /** Debits that a Postgres knew and another does not. A wallet that has decided one of them is ahead of that other one. */
  readonly unknownDebits = new Set<string>();
  /**
   * What a Postgres committed without the standby, which took over from it. None was confirmed, so each confirmed one is in the other. But
   * the wallet may have one of these already.
   */
  readonly unconfirmedMoves = new Set<string>();
  /** Every call that a Postgres was seen to have. */
  readonly #seen = new Map<string, Amount>();
  /** What moves amounted to that a Postgres had and another has not. A refund of all that is left is another amount there. */
  readonly #amounts = new Map<string, Set<number>>();

  /** What happened to Postgres, for the report of a failure. */
  readonly diary: string[] = [];

  /** To be called with what a Postgres has while it is used. */
  saw({ calls }: Known): void {
    for (const [id, call] of calls) this.#seen.set(id, call);
  }

  /** From now on another Postgres is asked than the one that had this. */
  replaced(former: Known, present: Known): void {
    this.saw(former);
    const { calls, moves } = difference(former, present);
    this.#note(
      `another postgres is asked: it has not ${calls.length} calls and ${moves.length} credits, refunds and debits`,
    );
    for (const id of calls) this.absentCalls.add(id);
    this.#loseMoves(former, moves, this.absentMoves);
    this.#forget(former, present);
  }

  /** From now on the standby is asked, which had all that `former` confirmed. Calls are no exception: their events are in Redis still. */
  tookOver(former: Known, present: Known): void {
    const { calls, moves } = difference(former, present);
    this.#note(
      `the standby takes over: it has not ${calls.length} calls and ${moves.length} credits, refunds and debits`,
    );
    this.#loseMoves(former, moves, this.unconfirmedMoves);
    this.#forget(former, present);
  }

  /** Nothing of `former` will ever count but what `present` has too. */
  giveUp(former: Known, present: Known): void {
    const { calls, moves } = difference(former, present);
    this.#note(
      `a postgres is given up: ${calls.length} calls and ${moves.length} credits, refunds and debits were only there`,
    );
    for (const id of calls) this.calls.add(id);
    this.#loseMoves(former, moves, this.moves);
    this.#forget(former, present);
  }

  #loseMoves(former: Known, references: readonly string[], into: Set<string>): void {
    for (const reference of references) {
      into.add(reference);
      const amounts = this.#amounts.get(reference) ?? new Set();
      this.#amounts.set(reference, amounts.add((former.moves.get(reference) as Amount).micros));
    }
  }

  #forget({ otherDebits }: Known, present: Known): void {
    for (const reference of otherDebits) {
      if (present.otherDebits.has(reference) || present.moves.has(reference)) continue;
      this.unknownDebits.add(reference);
      this.#note(`it has not the debit ${reference}, which was refused or had begun`);
    }
  }

  #note(words: string): void {
    this.diary.push(`${new Date().toISOString().slice(14, 23)} ${words}`);
  }

  /** Calls that Postgres had and has not, or has otherwise, although no Postgres that had them was given up. */
  missing(rows: ReadonlyMap<string, number>): string[] {
    return Array.from(this.#seen)
      .filter(([id, { micros }]) => !this.calls.has(id) && rows.get(id) !== micros)
      .map(([id, { micros }]) => `${id} was stored with ${micros}, and is now ${rows.get(id) ?? 'gone'}`);
  }

  /** What this move amounted to where another Postgres has not got it; nothing if there was no such Postgres. */
  amountsOf(reference: string): readonly number[] {
    return [...(this.#amounts.get(reference) ?? [])];
  }

  /** What the calls of an account cost that were lost. */
  lostMicros(accountId: string): number[] {
    const lost = [...this.calls].map((id) => this.#seen.get(id) as Amount);
    return lost.flatMap((call) => (call.accountId === accountId ? [call.micros] : []));
  }
}

const difference = (former: Known, present: Known) => ({
  calls: [...former.calls.keys()].filter((id) => !present.calls.has(id)),
  moves: [...former.moves.keys()].filter((reference) => !present.moves.has(reference)),
});
