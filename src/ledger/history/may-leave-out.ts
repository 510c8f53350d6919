/** A run of the comparison. */
export type Run = {
  /** The youngest row of the journal when it began. */
  readonly newestPosting: number;
  /** The youngest row when the previous run began. */
  readonly newestBefore: number;
  /** Whether the run compared everything, and left no difference. */
  readonly isClean: boolean;
};

/**
 * Whether a run now would find the same as the last one: nothing. Redis is not in doubt, and nothing was posted since the previous
 * run. A single run is not enough: after a posting, a trim or a load that had begun before may still be under way and change the
 * result. Money under way does not count, because calls do not change a drift. Changes that somebody makes in a store by hand are
 * not noticed.
 */
export function mayLeaveOut(
  last: Run | null,
  now: Pick<Run, 'newestPosting'> & { readonly isInDoubt: boolean },
): boolean {
  if (last === null || !last.isClean || now.isInDoubt) return false;
  return now.newestPosting === last.newestPosting && now.newestPosting === last.newestBefore;
}
