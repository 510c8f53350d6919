// Explores every history of a scenario, breadth first, so that the first counterexample is a shortest one. For each state it keeps a
// fingerprint of 64 bits, the number of its predecessor, and the step that led to it: 24 bytes at most.

import { credit, debit, gateway, refund, sweep } from './actors.ts';
import type { Rules } from './checks.ts';
import { brokenClaim } from './claims.ts';
import { faults, forget, recover } from './faults.ts';
import { compareAt, dataIdOf, verdictOn } from './judging.ts';
import { compareAndRepair, drop, hydrate, lateWriter, writer } from './ledger.ts';
import { CALL, FIRST_REDIS, fingerprint, STORED, type State, type Step, start } from './state.ts';

export type Result = {
  readonly states: number;
  readonly ends: number;
  readonly seconds: number;
  readonly isComplete: boolean;
  /** The broken promise, and the shortest history that breaks it, a line for each step; null: none. */
  readonly counterexample: { readonly promise: string; readonly history: readonly string[] } | null;
};

const ACTORS = [gateway, sweep, credit, refund, debit, writer, lateWriter, hydrate, compareAndRepair, drop, recover];

const begin = (rules: Rules): State => start(rules.calls, rules.maxFaults, dataIdOf(FIRST_REDIS, rules));

function work(state: State, rules: Rules): Step[] {
  const forgotten = forget(state, rules);
  if (forgotten.length > 0) return forgotten;
  const steps: Step[] = [];
  for (const actor of ACTORS) for (const step of actor(state, rules)) steps.push(step);
  return steps;
}

export function explore(rules: Rules, maxStates: number): Result {
  const beganAt = performance.now();
  const seen = new Seen();
  const first = begin(rules);
  seen.add(first, 0, 0);
  let level: State[] = [first];
  let levelFrom = 0;
  let ends = 0;
  const result = (isComplete: boolean, counterexample: Result['counterexample'] = null): Result => ({
    states: seen.size,
    ends,
    seconds: (performance.now() - beganAt) / 1000,
    isComplete,
    counterexample,
  });
  while (level.length > 0) {
    const next: State[] = [];
    for (const [at, state] of level.entries()) {
      const steps = work(state, rules);
      if (steps.length === 0 && state.right === null) {
        ends++;
        const promise = brokenAtEnd(state, rules);
        if (promise !== '') return result(false, { promise, history: tell(seen.pathTo(levelFrom + at), rules) });
      }
      steps.push(...faults(state, rules));
      for (const [i, step] of steps.entries()) {
        if (!seen.add(step.state, levelFrom + at, i)) continue;
        const { broken: promise } = step.state.ghost;
        if (promise !== '') return result(false, { promise, history: tell(seen.pathTo(seen.size - 1), rules) });
        next.push(step.state);
      }
    }
    if (seen.size > maxStates) return result(false);
    levelFrom += level.length;
    level = next;
  }
  return result(true);
}

const AS_CHARGED: ReadonlySet<number> = new Set([STORED.charged, STORED.late, STORED.aside]);
const AS_CAPTURED: ReadonlySet<number> = new Set([STORED.captured, STORED.aside]);

/** What must be true when faults have ended and nobody has anything left to do. @returns the broken promise; '': none */
function brokenAtEnd(state: State, rules: Rules): string {
  const { redis, pg, ghost, calls } = state;
  const { data } = redis;
  if (verdictOn(redis, pg, rules) === 'postgres is older') return 'Postgres stays older';
  if (data.stream.length > 0) return 'events are left';
  if (data.holds !== 0) return 'holds are left';
  const lost = calls.findIndex(
    (told, call) =>
      (told === CALL.charged || told === CALL.captured) &&
      !(told === CALL.charged ? AS_CHARGED : AS_CAPTURED).has(pg.stored[call] as number) &&
      !(ghost.lost & (1 << call)),
  );
  if (lost >= 0) return `call ${lost + 1} was charged and is lost, although no store lost it`;
  const { agrees, lostDebits, isAhead } = compareAt(data, pg, rules);
  const isAgreed = agrees && lostDebits === 0;
  // A Postgres that went back unnoticed may leave a drift. After one that was accepted only a wallet that is ahead has one.
  const isKnown = !ghost.rewound || (ghost.accepted && !isAhead);
  const isOurs = data.wallet?.tampered === 0 && !pg.stored.includes(STORED.aside) && isKnown;
  if (!isAgreed && !pg.reported) return 'a drift stays, and nobody was told';
  if (!isAgreed && isOurs) return 'a drift of Redis’s stays: it was taken for a bug or tampering';
  return brokenClaim(state, rules);
}

function tell(path: readonly number[], rules: Rules): string[] {
  let state = begin(rules);
  return path.map((i) => {
    const step = [...work(state, rules), ...faults(state, rules)][i] as Step;
    state = step.state;
    const { wallet, mark } = state.redis.data;
    return `${step.words}   [wallet ${wallet?.balance ?? '–'}, mark ${Math.floor(mark / 100)}, doubt ${state.pg.doubt}, verified ${state.pg.verified}]`;
  });
}

/** A set of fingerprints with open addressing, and how each state was reached. */
class Seen {
  #slots = new Uint32Array(1 << 21);
  #mask = (1 << 20) - 1;
  #from = new Uint32Array(1 << 19);
  #step = new Uint8Array(1 << 19);
  size = 0;
  readonly #print = new Uint32Array(2);

  /** @returns whether the state is new */
  add(state: State, from: number, step: number): boolean {
    fingerprint(state, this.#print);
    const [one, two] = [(this.#print[0] as number) || 1, this.#print[1] as number];
    if (!insert(this.#slots, this.#mask, one, two)) return false;
    if (this.size === this.#from.length) {
      this.#from = grown(this.#from, new Uint32Array(this.size * 2));
      this.#step = grown(this.#step, new Uint8Array(this.size * 2));
    }
    this.#from[this.size] = from;
    this.#step[this.size++] = step;
    if (this.size * 2 > this.#mask) this.#grow();
    return true;
  }

  /** The steps from the first state to this one. */
  pathTo(index: number): number[] {
    const path: number[] = [];
    for (let at = index; at > 0; at = this.#from[at] as number) path.push(this.#step[at] as number);
    return path.reverse();
  }

  #grow(): void {
    const old = this.#slots;
    this.#mask = this.#mask * 2 + 1;
    this.#slots = new Uint32Array((this.#mask + 1) * 2);
    for (let at = 0; at < old.length; at += 2) {
      if (old[at] !== 0) insert(this.#slots, this.#mask, old[at] as number, old[at + 1] as number);
    }
  }
}

/** `one` is never 0, which marks a free slot. @returns false if it was there */
function insert(slots: Uint32Array, mask: number, one: number, two: number): boolean {
  for (let at = two & mask; ; at = (at + 1) & mask) {
    if (slots[at * 2] === 0) {
      slots[at * 2] = one;
      slots[at * 2 + 1] = two;
      return true;
    }
    if (slots[at * 2] === one && slots[at * 2 + 1] === two) return false;
  }
}

function grown<T extends Uint32Array | Uint8Array>(from: T, to: T): T {
  to.set(from);
  return to;
}
