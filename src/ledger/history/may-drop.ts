import { isInDoubt, type ShardHistory } from './judge.ts';

/** What one script read about an account at one instant, and Postgres after that. */
type Loaded = {
  readonly holds: number;
  /** Events in the stream, stored or not. */
  readonly streamed: number;
  readonly hasBegunDebit: boolean;
};

/**
 * Whether a wallet may leave Redis, to be loaded again exactly. Without holds and events, Postgres knows everything in it, except
 * what the wallet has decided about a begun debit.
 */
export function mayDrop(history: ShardHistory, { holds, streamed, hasBegunDebit }: Loaded): boolean {
  return isInDoubt(history) && holds === 0 && streamed === 0 && !hasBegunDebit;
}
