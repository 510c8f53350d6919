import { ApiError } from '../errors.ts';

/** Maximum blocked buyers of a listing: every gateway keeps those of all listings in memory, with 33 bytes each. */
export const MAX_BLOCKED_BUYERS = 200;

/** A pseudonym that `Pseudonyms` makes. */
export const PSEUDONYM_PATTERN = '^[0-9a-f]{32}$';

/** @param text  `Listing.blockedBuyers` */
export const blockedBuyersIn = (text: string | null): readonly string[] => text?.split(',') ?? [];

/**
 * The new `Listing.blockedBuyers` after this buyer was blocked or unblocked.
 *
 * @throws ApiError `conflict` at the bound
 */
export function withBlock(text: string | null, buyer: string, isBlocked: boolean): string | null {
  const others = blockedBuyersIn(text).filter((other) => other !== buyer);
  if (isBlocked && others.length >= MAX_BLOCKED_BUYERS) {
    throw new ApiError(
      'conflict',
      `A service may have at most ${MAX_BLOCKED_BUYERS} blocked buyers. Make one of them active first.`,
    );
  }
  const all = isBlocked ? [...others, buyer] : others;
  return all.length === 0 ? null : all.sort().join(',');
}
