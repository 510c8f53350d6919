/** A run of the comparison. */
export type Run = {
  /** The youngest row of the journal when it began. */
  readonly newestPosting: number;
  /** The same of the run before it. */
  readonly newestBefore: number;
  /** Whether it compared everything, and left nothing wrong. */
  readonly isClean: boolean;
};

/**
 * Whether a run now would find what the last one found: nothing. Redis is not in doubt, and nothing was posted since the run before that.
 * One run is not enough: after a posting a trim or a loading that had begun before may still be under way, and change what is found.
 * Money under way does not count, because calls do not change a drift. What somebody writes to a store by hand is not seen.
 */
export function mayLeaveOut(
  last: Run | null,
  now: Pick<Run, 'newestPosting'> & { readonly isInDoubt: boolean },
): boolean {
  if (last === null || !last.isClean || now.isInDoubt) return false;
  return now.newestPosting === last.newestPosting && now.newestPosting === last.newestBefore;
}
