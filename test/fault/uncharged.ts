// Checks of the contract's section 'What is not charged, and what comes back': which calls are refused before money is touched, which are
// refunded, and that a call that must be free took a free call or nothing.

import type { Row } from './books.ts';
import type { Told } from './callers.ts';
import type { Listing } from './market.ts';
import { isKeptOut } from './repeats.ts';
import { costs, isDenied, isFreeOnly, isGivenBack, isTooMany, refusalOf } from './wishes.ts';

type Evidence = {
  readonly told: readonly Told[];
  readonly rows: readonly Row[];
  readonly listings: readonly Listing[];
  /** Whether the wallet may not have known this call for a while, so that its free call was there again. */
  readonly mayBeForgotten: (row: Row) => boolean;
};

/** @returns in words what is wrong */
export function checkUncharged({ told, rows, listings, mayBeForgotten }: Evidence): string[] {
  const byId = new Map(listings.map((listing) => [listing.id, listing]));
  const kept = rows.filter((row) => row.freeTier && row.outcome === 'completed' && !mayBeForgotten(row));
  const hasTaken = new Set(kept.map(({ usageId }) => usageId));
  const said = (why: string | null, of: object): string[] => (why === null ? [] : [`${why}: ${JSON.stringify(of)}`]);
  // What a replay says is of another call.
  const calls = told.filter(({ isReplayed }) => !isReplayed);
  return [
    ...rows.flatMap((row) => said(faultOfRow(row, byId.get(row.serviceId) as Listing), row)),
    ...calls.flatMap((call) => said(faultOfAnswer(call) ?? faultOfFreeCalls(call, calls, hasTaken), call)),
  ];
}

function faultOfRow(row: Row, listing: Listing): string | null {
  const { path, outcome, status, amountMicros, freeTier } = row;
  const call = { listing, path };
  const refusal = refusalOf(call);
  if (refusal !== null) return `to be refused as ${refusal}, but there is a record`;
  if (isFreeOnly(path) && (amountMicros !== 0 || (costs(listing) && !freeTier)))
    return 'to be a free call, but is none';
  // A caller that left before the answer pays for what it was.
  if (isGivenBack(call) && outcome === 'completed' && status !== 499) return 'to be given back, but kept';
  if (outcome === 'refunded:upstream_rate_limited' && !isTooMany(call)) return 'given back for no reason';
  return outcome === 'refunded:upstream_denied' && !isDenied(call) ? 'given back for no reason' : null;
}

function faultOfAnswer(call: Told): string | null {
  const { path, usageId, status, amountMicros, code } = call;
  const refusal = refusalOf(call);
  if (refusal !== null && usageId !== null) return `to be refused as ${refusal}, but admitted`;
  if (isFreeOnly(path) && usageId !== null && amountMicros !== 0) return 'to be a free call, but told of a price';
  const isAnswer = usageId !== null && code === null && status < 500;
  return isGivenBack(call) && isAnswer && amountMicros !== 0 ? 'to be given back, but told of a price' : null;
}

/**
 * Checks the number of free calls left that a caller was told. A call may have taken one if it began before this one's end, and has taken
 * one if it completed before this one began.
 */
function faultOfFreeCalls(call: Told, told: readonly Told[], hasTaken: ReadonlySet<string>): string | null {
  const { listing, usageId, freeLeft } = call;
  const hasFreeCalls = listing.freeCalls > 0 && costs(listing);
  if (usageId !== null && (freeLeft !== null) !== hasFreeCalls)
    return 'told of free calls that there are not, or not of those';
  if (freeLeft === null && call.code !== 'free_calls_used') return null;
  if (!hasFreeCalls) return null;
  const others = told.filter(
    (other) => other !== call && isSame(other.listing, listing) && other.accountId === call.accountId,
  );
  const mayHaveTaken = others.filter((other) => other.atMs <= call.endMs && mayTake(other)).length;
  if (freeLeft === null) return mayHaveTaken < listing.freeCalls ? 'refused, but free calls were left' : null;
  const ownAtMost = call.freeTier ? 1 : 0;
  if (freeLeft < listing.freeCalls - mayHaveTaken - ownAtMost) return 'told of too few free calls';
  const before = others.filter(({ usageId: id, endMs }) => id !== null && hasTaken.has(id) && endMs < call.atMs);
  const ownAtLeast = hasTaken.has(call.usageId as string) ? 1 : 0;
  return freeLeft > listing.freeCalls - before.length - ownAtLeast ? 'told of too many free calls' : null;
}

const isSame = (a: Listing, b: Listing): boolean => a.id === b.id;

/** Whether the call may have had a free call, if only for a while. */
const mayTake = (call: Told): boolean => {
  if (refusalOf(call) !== null || isKeptOut(call)) return false;
  return call.usageId === null ? ![401, 402, 429].includes(call.status) : call.freeTier === true;
};
