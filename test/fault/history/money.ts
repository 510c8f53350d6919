// Credits and debits of a schedule, as their sender saw them, and what Postgres has of them in the end.

import type { Buyer } from '../market.ts';
import type { Stack } from '../stack.ts';

/** A credit, or a debit with a negative amount. */
export type Move = {
  readonly accountId: string;
  readonly reference: string;
  readonly micros: number;
  readonly atMs: number;
  readonly endMs: number;
  /** Whether it was confirmed, and not refused because the wallet had less. */
  readonly isDone: boolean;
};

/** The credits and debits that Postgres has, by reference. */
export type Posted = ReadonlyMap<string, { readonly accountId: string; readonly micros: number }>;

export async function readPosted({ stores }: Stack, buyers: readonly Buyer[]): Promise<Posted> {
  const ids = buyers.map(({ key }) => key.account_id);
  const rows = await stores.sql<{ reference: string; accountId: string; micros: string }[]>`
    SELECT reference, account_id AS "accountId", amount::text AS micros FROM credits WHERE account_id = ANY(${ids}::uuid[])
    UNION ALL
    SELECT reference, account_id, (-amount)::text FROM debits WHERE account_id = ANY(${ids}::uuid[]) AND state = 'taken'`;
  return new Map(rows.map(({ reference, accountId, micros }) => [reference, { accountId, micros: Number(micros) }]));
}

/** Every confirmed credit and debit is there, unless a Postgres was given up that had it; and nothing else is. */
export function checkMoves(moves: readonly Move[], posted: Posted, givenUp: ReadonlySet<string>): string[] {
  const faults: string[] = [];
  for (const move of moves) {
    const found = posted.get(move.reference);
    if (found === undefined) {
      if (move.isDone && !givenUp.has(move.reference)) faults.push(`confirmed, but not there: ${JSON.stringify(move)}`);
    } else if (found.micros !== move.micros || found.accountId !== move.accountId) {
      faults.push(`another amount or account: ${JSON.stringify({ move, found })}`);
    } else if (!move.isDone) {
      faults.push(`refused, but there: ${JSON.stringify(move)}`);
    }
  }
  const asked = new Set(moves.map(({ reference }) => reference));
  return [...faults, ...[...posted.keys()].filter((it) => !asked.has(it)).map((it) => `nobody asked for ${it}`)];
}
