// The claim of the one idempotency key of both calls, where the scenario has keys: a number in Redis's data. 0: nobody has it. Otherwise
// it says whose claim it is, and whether that call was charged, as src/admission/scripts/includes/claims.lua does.

import type { Rules } from './checks.ts';
import { CALL, type Data, END, type End, STORED, type State } from './state.ts';

const CHARGED = 1;

export const openClaim = (call: number, { keyed }: Rules): number => (keyed ? (call + 1) * 2 : 0);

/** The call that has the claim; -1: none has. */
const ownerOf = (claim: number): number => (claim >> 1) - 1;

/** A bit for the call that has the claim. */
const bitOf = (claim: number): number => (claim === 0 ? 0 : 1 << ownerOf(claim));

/** What a call with the key is told before its admission: `free` lets it go on. */
export function told({ claim, holds }: Data, { without }: Rules): 'free' | 'under way' | 'charged' {
  if (claim === 0 || without.has('claimed')) return 'free';
  if ((claim & CHARGED) !== 0) return 'charged';
  if ((holds & bitOf(claim)) !== 0) return 'under way';
  if (without.has('claimOver')) return 'under way';
  return without.has('claimUnknown') ? 'free' : 'charged';
}

/** The claim after a call has ended, in the step that removes its hold. */
export function ended({ claim }: Data, call: number, how: End, { without }: Rules): number {
  if (ownerOf(claim) !== call && !without.has('claimOwner')) return claim;
  if (claim === 0 || how === END.refunded) return without.has('claimFreed') ? claim : 0;
  return claim | CHARGED;
}

/** Bits of the calls whose claim Redis had before a fault, and has not after it. */
export function claimsLost(before: State, after: State): number {
  return bitOf(before.redis.data.claim) & ~bitOf(after.redis.data.claim);
}

const PAID: ReadonlySet<number> = new Set([STORED.charged, STORED.captured, STORED.late]);

/** What must be true of the key when nobody has anything left to do. @returns the broken promise; '': none */
export function brokenClaim({ redis, pg, ghost, calls }: State, rules: Rules): string {
  if (!rules.keyed) return '';
  const { claim } = redis.data;
  const isPaid = (call: number): boolean => PAID.has(pg.stored[call] as number);
  const paid = calls.flatMap((_, call) => (isPaid(call) && (ghost.unclaimed & (1 << call)) === 0 ? [call] : []));
  if (paid.length > 1) return 'two calls with one key were charged, although Redis lost no claim';
  if (paid.some((call) => ownerOf(claim) !== call))
    return 'a charged call has lost its key, although Redis lost no claim';
  const answer = told(redis.data, rules);
  if (answer === 'under way') return 'a key stays under way after its call has ended';
  // After a crash Redis may know that a call had begun, and not how it ended. Then nobody is charged for the key. A call that both masters
  // have ended, or whose charge is lost, keeps its key, too.
  const isUnknown = ((claim & CHARGED) === 0 && ghost.strikes > 0) || (ghost.lost & bitOf(claim)) !== 0;
  if (claim !== 0 && !isPaid(ownerOf(claim)) && !isUnknown)
    return 'the key of a call that was not charged stays claimed';
  return claim === 0 && calls.includes(CALL.new) ? 'a free key cannot be called' : '';
}
