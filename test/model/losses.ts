// Which calls a fault took from both stores. Only these may be missing at the end.

import { withGhost } from './actors.ts';
import { claimsLost } from './claims.ts';
import { callOf, isCharged } from './judging.ts';
import { type Data, STORED, type State } from './state.ts';

/** A call is lost when a fault takes its event from the last store that has it: a stream of a living Redis, or Postgres. */
export function withLosses(before: State, after: State): State {
  const lost = before.ghost.lost | (eventsOf(before) & ~eventsOf(after));
  const unclaimed = before.ghost.unclaimed | claimsLost(before, after);
  const isSame = lost === after.ghost.lost && unclaimed === after.ghost.unclaimed;
  return isSame ? after : withGhost(after, { lost, unclaimed });
}

/** Whether a fault took more than others had taken before. */
export function isAnyLost(before: State, after: State): boolean {
  return (eventsOf(before) & ~eventsOf(after) & ~before.ghost.lost) !== 0;
}

/** A bit for each call whose charge is in a store. */
function eventsOf({ redis, old, pg, right }: State): number {
  const inStreams = streamed(redis.data) | (old === null ? 0 : streamed(old.data));
  return inStreams | stored(pg.stored) | stored(right?.stored ?? []);
}

export function streamed({ stream }: Pick<Data, 'stream'>): number {
  return stream.filter(isCharged).reduce((bits, event) => bits | (1 << callOf(event)), 0);
}

function stored(calls: readonly number[]): number {
  return calls.reduce((bits, how, call) => bits | (how === STORED.not || how === STORED.refunded ? 0 : 1 << call), 0);
}
