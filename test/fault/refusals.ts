// Checks of what callers of child keys were told: no budget refuses what it covers, and no bucket of tokens what it has.

import { ERRORS, type ErrorCode } from '../../src/errors.ts';
import { type Budgeted, budgetsOf, chainOf, isBelow } from './budgets.ts';
import type { Told } from './callers.ts';
import type { Buyer, Child } from './market.ts';
import { isKeptOut, OF_REPEATS } from './repeats.ts';
import { OWN_RATE_LIMIT } from './trees.ts';
import { isFreeOnly, refusalOf } from './wishes.ts';

/** Redis's clock and that of the callers may be read in another millisecond. */
const CLOCKS_DIFFER_MS = 20;

/** The refusals of the contract that a call may meet that costs something; any 503 is one, too. */
const FOR_WANT: readonly ErrorCode[] = ['insufficient_balance', 'budget_exceeded'];

/** The refusals that this call may get. One that is refused in any case gets no other, except for lack of a token. */
function refusalsOf({ listing, path, idempotencyKey }: Told): readonly ErrorCode[] {
  const refusal = refusalOf({ listing, path });
  if (refusal !== null) return ['rate_limited', refusal];
  const ofRepeats = idempotencyKey === null ? [] : OF_REPEATS;
  return ['rate_limited', ...ofRepeats, ...(isFreeOnly(path) ? (['free_calls_used'] as const) : FOR_WANT)];
}

/** @param told  all calls of the account, and only these */
export function checkRefusals(buyer: Buyer, told: readonly Told[]): string[] {
  return told.flatMap((call) => {
    const why = faultOf(call, buyer, told);
    return why === null ? [] : [`${why}: ${JSON.stringify(call)}`];
  });
}

function faultOf(call: Told, buyer: Buyer, told: readonly Told[]): string | null {
  const most = Math.min(...budgetsOf(buyer, call.keyId).map(({ budget }) => budget.micros));
  if (call.balanceMicros !== null && call.balanceMicros > most) return `told of more than the budget of ${most}`;
  if (call.usageId !== null || call.status === 0 || call.status === 503) return null;
  // A body that was cut says nothing.
  if (!call.complete) return null;
  if (call.status === 401 && isRevoked(call, buyer)) return null;
  const isKnown = refusalsOf(call).some((code) => code === call.code && ERRORS[code].status === call.status);
  if (!isKnown) return 'refused, but not as the contract says';
  if (call.code === 'budget_exceeded') return faultOfBudget(call, buyer, told);
  return call.code === 'rate_limited' && !mayBeEmpty(call, buyer, told) ? 'no bucket can have been empty' : null;
}

function faultOfBudget(call: Told, buyer: Buyer, told: readonly Told[]): string | null {
  const child = budgetsOf(buyer, call.keyId).find(({ key }) => key.key_id === call.limitKey);
  if (child === undefined) return 'refused by a budget that is not above it';
  const left = Number(call.remainingMicros);
  if (left >= call.listing.priceMicros) return 'refused, but the budget covers it';
  const atLeast = leastLeft(child, call, callsBelow(child, buyer, told));
  return left < atLeast ? `the budget had at least ${atLeast} left` : null;
}

const callsBelow = (child: Child, buyer: Buyer, told: readonly Told[]): readonly Told[] =>
  told.filter(({ keyId }) => isBelow(buyer, keyId, child));

/** What is left of a budget at a call's time if all calls that began before its end hold the most that they can. */
function leastLeft({ budget, change }: Budgeted, { endMs }: Told, calls: readonly Told[]): number {
  const isLowered = change !== null && change.sentMs <= endMs;
  const micros = isLowered ? (change.micros ?? budget.micros) : budget.micros;
  const before = calls.filter((other) => other.atMs <= endMs && mayHold(other));
  return before.reduce((sum, { listing }) => sum - (listing.maxMicros ?? listing.priceMicros), micros);
}

const mayHold = (call: Told): boolean => {
  if (isKeptOut(call)) return false;
  if (call.usageId !== null) return true;
  return refusalOf(call) === null && ![401, 402, 429].includes(call.status);
};

/** Whether the key, or one above it, may have been revoked by the end of the call. */
const isRevoked = ({ keyId, endMs }: Told, buyer: Buyer): boolean =>
  chainOf(buyer, keyId).some(({ change }) => change?.micros === null && change.sentMs <= endMs);

/** The least that the budgets of a call can have left to its key. */
export function leastOfBudgets(call: Told, buyer: Buyer, told: readonly Told[]): number {
  const lefts = budgetsOf(buyer, call.keyId).map((child) => leastLeft(child, call, callsBelow(child, buyer, told)));
  return Math.min(...lefts);
}

/** Whether the calls that began before have as many tokens as a bucket of the key, or of one above it, ever has at once. */
function mayBeEmpty({ keyId, endMs }: Told, buyer: Buyer, told: readonly Told[]): boolean {
  const before = told.filter(({ atMs }) => atMs <= endMs);
  // A new child key took a token of each key above it.
  const made = buyer.children.length;
  if (before.length + made >= OWN_RATE_LIMIT) return true;
  return chainOf(buyer, keyId).some((child) => callsBelow(child, buyer, before).length + made >= child.rateLimit);
}

/**
 * Whether more calls of a key and of those below it were admitted than its bucket can have had tokens. To be called only where Redis
 * cannot have forgotten a bucket.
 */
export function checkTokens(buyer: Buyer, told: readonly Told[]): string[] {
  return buyer.children.flatMap((child) => {
    // A replay takes a token of its own key alone.
    const admitted = callsBelow(child, buyer, told).filter(
      ({ usageId, isReplayed, keyId }) => usageId !== null && (!isReplayed || keyId === child.key.key_id),
    );
    const times = admitted.flatMap(({ atMs, endMs }) => [atMs, endMs]);
    const lastedMs = Math.max(0, Math.max(...times) - Math.min(...times)) + CLOCKS_DIFFER_MS;
    if (admitted.length <= child.rateLimit * (1 + lastedMs / 60_000)) return [];
    return [`${admitted.length} calls of ${child.key.key_id}, and those below it, with ${child.rateLimit} tokens`];
  });
}
