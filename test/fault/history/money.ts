// Credits, debits and refunds of a schedule, as their sender saw them, and what Postgres has of them in the end.

import type { Drift } from '../../../src/ledger/reconcile/report.ts';
import type { Buyer } from '../market.ts';
import { type GivenBack, isConfirmed } from '../refunds.ts';
import type { Stack } from '../stack.ts';
import type { GivenUp } from './given-up.ts';

/** A credit, a refund of a call, or a debit with a negative amount. */
export type Move = {
  readonly accountId: string;
  readonly reference: string;
  readonly micros: number;
  readonly atMs: number;
  readonly endMs: number;
  /** Whether it was confirmed, and not refused because the wallet had less. */
  readonly isDone: boolean;
  /** Only for a refund. If its first answer was lost, perhaps only the writer brings it into the wallet. */
  readonly refund?: 'in the wallet' | 'to come' | 'refused';
};

/** A refund for each reference. Of one that was asked for all that was left, what was told last counts. */
export function movesOf(given: readonly GivenBack[]): Move[] {
  const references = new Set(given.map(({ reference }) => reference));
  return Array.from(references, (reference): Move => {
    const all = given.filter((one) => one.reference === reference).sort((a, b) => a.endMs - b.endMs);
    const last = (all.findLast(isConfirmed) ?? all.at(-1)) as GivenBack;
    const isDone = isConfirmed(last);
    const isMade = all.some(({ status }) => status === 201);
    return {
      accountId: last.accountId,
      reference,
      micros: last.gaveMicros ?? last.micros ?? last.costMicros,
      atMs: Math.min(...all.map(({ atMs }) => atMs)),
      endMs: Math.max(...all.map(({ endMs }) => endMs)),
      isDone,
      refund: isMade ? 'in the wallet' : isDone ? 'to come' : 'refused',
    };
  });
}

/** The credits, refunds and debits that Postgres has, by reference. */
export type Posted = ReadonlyMap<string, { readonly accountId: string; readonly micros: number }>;

export async function readPosted({ stores }: Stack, buyers: readonly Buyer[]): Promise<Posted> {
  const ids = buyers.map(({ key }) => key.account_id);
  const rows = await stores.sql<{ reference: string; accountId: string; micros: string }[]>`
    SELECT coalesce(c.reference, r.reference) AS reference, c.account_id AS "accountId", c.amount::text AS micros
    FROM credits c LEFT JOIN refunds r ON r.account_id = c.account_id AND r.credit_seq = c.seq
    WHERE c.account_id = ANY(${ids}::uuid[])
    UNION ALL
    SELECT reference, account_id, (-amount)::text FROM debits WHERE account_id = ANY(${ids}::uuid[]) AND state = 'taken'`;
  return new Map(rows.map(({ reference, accountId, micros }) => [reference, { accountId, micros: Number(micros) }]));
}

/** Every confirmed credit, refund and debit is there, unless a Postgres was given up that had it; and nothing else is. */
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

/**
 * Whether a drift comes from credits, refunds and debits that were lost with a Postgres. The wallet still has them, or took the
 * next one, with the same number, for the lost one. While it has one unknown to Postgres, it is not repaired: so it also keeps the charges
 * of lost calls, and lacks those that Redis lost.
 *
 * @param forgottenMicros  what stored calls of the account cost that Redis may have lost
 */
export function isDriftOfMoves(
  {
    accountId,
    driftMicros,
    freeDrifts,
    notRepaired,
  }: Pick<Drift, 'accountId' | 'driftMicros' | 'freeDrifts' | 'notRepaired'>,
  moves: readonly Move[],
  givenUp: GivenUp,
  forgottenMicros: readonly number[],
): boolean {
  const { moves: gone, absentMoves, unconfirmedMoves, unknownDebits } = givenUp;
  const isLost = ({ reference }: Move): boolean =>
    [gone, absentMoves, unconfirmedMoves, unknownDebits].some((lost) => lost.has(reference));
  if (!moves.some(isLost)) return false;
  const lostCalls = givenUp.lostMicros(accountId);
  const forgotten = notRepaired.includes('does not know') ? forgottenMicros : [];
  if (freeDrifts.some(({ used, expected }) => used - expected > lostCalls.length || expected - used > forgotten.length))
    return false;
  let [ofMoves, ofCalls]: [Sums, Sums] = [new Set([driftMicros]), new Set([0])];
  for (const move of moves)
    ofMoves = spread(ofMoves, ...amountsOf(move, givenUp).flatMap((micros) => [-micros, micros]));
  for (const micros of lostCalls) ofCalls = spread(ofCalls, -micros);
  for (const micros of forgotten) ofCalls = spread(ofCalls, micros);
  return Array.from(ofMoves).some((sum) => ofCalls.has(sum));
}

/** What a credit, refund or debit amounted to in the wallet or in a Postgres. A refused refund moved only what a lost Postgres had of it. */
export function amountsOf({ reference, micros, refund }: Move, givenUp: GivenUp): readonly number[] {
  const lost = givenUp.amountsOf(reference);
  return refund === 'refused' || lost.includes(micros) ? lost : [micros, ...lost];
}

type Sums = ReadonlySet<number>;

/** Each of the sums, without and with each of these. */
const spread = (sums: Sums, ...by: readonly number[]): Sums =>
  new Set(Array.from(sums).flatMap((sum) => [sum, ...by.map((micros) => sum + micros)]));
