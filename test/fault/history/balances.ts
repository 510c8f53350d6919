// Bounds of every balance that a caller was told. They are wide where things happened at the same time, and where a wallet had too much
// for a while; without faults they are the calls under way.

import type { Row } from '../books.ts';
import type { Told } from '../callers.ts';
import type { Buyer } from '../market.ts';
import { leastOfBudgets } from '../refusals.ts';
import { isKeptOut } from '../repeats.ts';
import type { Move } from './money.ts';

/** How long a hold may outlive its response: Redis may be away for a while, and then a settlement is sent again. */
const SETTLED_WITHIN_MS = 5_000;

type BalanceEvidence = {
  readonly buyer: Buyer;
  readonly told: readonly Told[];
  readonly rows: ReadonlyMap<string, Row>;
  readonly moves: readonly Move[];
  /** Whether the wallet may not have known this call, or this credit or debit, for a while. */
  readonly mayBeForgotten: (call: Told) => boolean;
  readonly isMoveForgotten: (move: Move) => boolean;
};

/** @returns what is wrong with the balances that callers of one account were told */
export function checkBalances({
  buyer,
  told,
  rows,
  moves,
  mayBeForgotten,
  isMoveForgotten,
}: BalanceEvidence): string[] {
  const calls = told.filter((call) => !isKeptOut(call));
  return calls.flatMap((call): string[] => {
    const { balanceMicros, atMs, endMs } = call;
    if (balanceMicros === null) return [];
    let [atLeast, atMost] = [0, 0];
    for (const move of moves) {
      if (move.refund === 'refused' && !isMoveForgotten(move)) continue;
      const hasEnded = move.endMs < atMs && move.isDone && move.refund !== 'to come' && !isMoveForgotten(move);
      const hasBegun = move.atMs <= endMs;
      if (move.micros > 0 ? hasEnded : hasBegun) atLeast += move.micros;
      if (move.micros > 0 ? hasBegun : hasEnded) atMost += move.micros;
    }
    for (const other of calls) {
      const row = rows.get(other.requestId ?? '');
      // A call whose caller left may be admitted later.
      const overMs = other.endMs + (other.complete ? 0 : SETTLED_WITHIN_MS);
      if (overMs < atMs && row !== undefined && !mayBeForgotten(other)) atMost -= row.amountMicros;
      const { priceMicros, maxMicros } = other.listing;
      const isOver = other.endMs + SETTLED_WITHIN_MS < atMs;
      if (other.atMs <= endMs) atLeast -= row !== undefined && isOver ? row.amountMicros : (maxMicros ?? priceMicros);
    }
    // A child key is told what budgets and wallet leave it.
    atLeast = Math.min(atLeast, leastOfBudgets(call, buyer, calls));
    if (balanceMicros >= atLeast && balanceMicros <= atMost) return [];
    return [`told of a balance of ${balanceMicros}, not within ${atLeast} and ${atMost}: ${call.requestId}`];
  });
}
