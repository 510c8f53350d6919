import { unavailableError } from '../errors.ts';
import { FairLine } from '../fair-line.ts';

/**
 * Maximum requests that wait for a permit, equal to the number of statements that may wait for the pool of Postgres. One more gets
 * 503.
 */
const MAX_WAITING = 1_000;
/** Maximum waiting requests of one owner. Four owners with full lines still leave room for others to wait briefly. */
const MAX_WAITING_OF_ONE = 240;
/** Maximum time that a request waits; then it gets 503. It equals the total time of a page (api.ts). */
const MAX_WAIT_MS = 5_000;
/** Connections that pages leave for the gateway's other uses of Postgres: the look-up of keys, the catalog, credits. */
const LEFT_TO_OTHERS = 2;

export type PagePermitsOptions = {
  /** Maximum requests under way at the same time: of all owners, and of one. */
  readonly permits: number;
  readonly permitsOfOne: number;
  readonly maxWaiting?: number;
  readonly maxWaitingOfOne?: number;
  readonly maxWaitMs?: number;
};

/** Permits for a pool with this many connections. One owner has at most a fifth of them. */
export const permitsFor = (connections: number): PagePermitsOptions => ({
  permits: Math.max(1, connections - LEFT_TO_OTHERS),
  permitsOfOne: Math.max(1, Math.floor(connections / 5)),
});

/** Permits for requests that are answered from memory: for many owners, each of whom may search twice at the same time. */
export const IN_MEMORY: PagePermitsOptions = { permits: 64, permitsOfOne: 2 };

type Waiting = { readonly owner: string; readonly begin: () => void; readonly timer: NodeJS.Timeout };

/**
 * Shares the pool of Postgres between the owners of page requests. Without this, eight slow statements of one key made every page
 * of everybody else answer 503.
 *
 * A request keeps its permit until its handler has ended, even if the caller got a 503 before: until then its statement runs. An
 * owner never has more than its permits, even if the others are free. A statement may take 15 s, so lent permits would not be back
 * when somebody else needs them.
 *
 *   a permit of the owner's and one of all are free ──► begins
 *   otherwise ──► waits in its owner's line; the owners with a line take turns
 *
 * Tested by test/http/page-permits.test.ts and test/integration/fairness.test.ts.
 */
export class PagePermits {
  readonly #options: Required<PagePermitsOptions>;
  readonly #line: FairLine<Waiting>;
  #free: number;

  constructor(options: PagePermitsOptions) {
    this.#options = {
      maxWaiting: MAX_WAITING,
      maxWaitingOfOne: MAX_WAITING_OF_ONE,
      maxWaitMs: MAX_WAIT_MS,
      ...options,
    };
    this.#line = new FairLine(this.#options.maxWaiting, this.#options.maxWaitingOfOne);
    this.#free = options.permits;
  }

  /**
   * Runs `work` in a permit of the owner: an account, or the address of a caller without a key. Rejects with `unavailable` when a bound
   * of the line is reached.
   */
  async run<T>(owner: string, work: () => Promise<T>): Promise<T> {
    if (this.#free > 0 && this.#line.takenBy(owner) < this.#options.permitsOfOne) this.#take(owner);
    else await this.#wait(owner);
    try {
      return await work();
    } finally {
      this.#leave(owner);
    }
  }

  #take(owner: string): void {
    this.#line.took(owner);
    this.#free--;
  }

  #wait(owner: string): Promise<void> {
    if (!this.#line.hasRoomFor(owner)) return Promise.reject(busyError());
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#line.remove(owner, entry);
        reject(busyError());
      }, this.#options.maxWaitMs);
      const entry: Waiting = { owner, begin: resolve, timer };
      this.#line.wait(owner, entry);
    });
  }

  #leave(owner: string): void {
    // The owner had no turn so far: its turn is after those of the others that wait.
    if (this.#line.takenBy(owner) === this.#options.permitsOfOne) this.#line.goesLast(owner);
    this.#line.left(owner);
    this.#free++;
    this.#serveNext();
  }

  /** Gives the permit that was just released to the next in turn, if anybody may have it. */
  #serveNext(): void {
    const next = this.#line.next(this.#options.permitsOfOne);
    if (next === undefined) return;
    clearTimeout(next.timer);
    this.#line.served(next.owner, next);
    this.#take(next.owner);
    next.begin();
  }
}

const busyError = () =>
  unavailableError(undefined, 'Too many requests of this account or address are waiting. Please retry.');
