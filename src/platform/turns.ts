/**
 * Maximum time that one step of long work may keep the event loop busy, in milliseconds. A step may exceed it by the unit of work
 * that it had begun, which must be short. Calls wait for one step at most.
 */
const STEP_MS = 1;

/**
 * Shares the event loop between long pieces of work and everything else: one step per turn of the loop, for all that ask together.
 * So a hundred pieces of work delay a call no longer than one does. They advance in rotation, but every other turn belongs to work
 * that applies changes (`nextAhead`), if any waits: otherwise a few hundred readers of long answers would keep the catalog from
 * following Postgres.
 *
 *     await turns.next();
 *     const pause = stepEnd();
 *     while (more && !pause()) …
 */
class Turns {
  readonly #waiting = new Line();
  readonly #ahead = new Line();
  #wasAhead = false;
  #scheduled = false;

  /** Resolves in a turn of the event loop in which no other work of this kind runs. */
  next(): Promise<void> {
    return this.#wait(this.#waiting);
  }

  /** As `next`, for work that applies changes, of which there is little at a time. */
  nextAhead(): Promise<void> {
    return this.#wait(this.#ahead);
  }

  #wait(line: Line): Promise<void> {
    return new Promise((resolve) => {
      line.add(resolve);
      if (!this.#scheduled) this.#schedule();
    });
  }

  #schedule(): void {
    this.#scheduled = true;
    setImmediate(this.#run);
  }

  // The work resolved here runs directly after this returns, before the loop goes on.
  readonly #run = (): void => {
    this.#scheduled = false;
    this.#wasAhead = !this.#ahead.isEmpty && (!this.#wasAhead || this.#waiting.isEmpty);
    (this.#wasAhead ? this.#ahead : this.#waiting).callFirst();
    if (!this.#waiting.isEmpty || !this.#ahead.isEmpty) this.#schedule();
  };
}

class Line {
  readonly #resolvers: (() => void)[] = [];
  /** Index of the first resolver that has not been called; those before it are dropped when the list is empty or long. */
  #first = 0;

  get isEmpty(): boolean {
    return this.#resolvers.length === 0;
  }

  add(resolver: () => void): void {
    this.#resolvers.push(resolver);
  }

  callFirst(): void {
    (this.#resolvers[this.#first++] as () => void)();
    if (this.#first === this.#resolvers.length || this.#first >= 1_024) {
      this.#resolvers.splice(0, this.#first);
      this.#first = 0;
    }
  }
}

/** The turns of this process. There is only one event loop, so there is only one instance. */
export const turns = new Turns();

/** A function that says whether the step that begins now has used its time. Asking takes 40 ns. */
export function stepEnd(): () => boolean {
  const endsAt = performance.now() + STEP_MS;
  return () => performance.now() >= endsAt;
}

/**
 * A piece of work that takes several steps; the first has begun.
 *
 *     const steps = new Steps();
 *     while (more) { …; if (steps.isOver) await steps.next(); }
 */
export class Steps {
  #isOver = stepEnd();

  /** Whether the present step has used its time. */
  get isOver(): boolean {
    return this.#isOver();
  }

  /** Begins the next step, in another turn of the event loop. */
  async next(): Promise<void> {
    await turns.next();
    this.#isOver = stepEnd();
  }
}
