import { unavailableError } from '../errors.ts';

/** Maximum requests that wait for a place: as many as the pool of Postgres lets wait. One more gets 503. */
const MAX_WAITING = 1_000;
/** Maximum requests of one owner that wait. Four owners with full lines still leave room for others to wait briefly. */
const MAX_WAITING_OF_ONE = 240;
/** Maximum time that a request waits; then it gets 503. As long as a page may take in all (api.ts). */
const MAX_WAIT_MS = 5_000;
/** Connections that pages leave to everything else of the gateway that asks Postgres: the look-up of keys, the catalog, credits. */
const LEFT_TO_OTHERS = 2;

export type PagePlacesOptions = {
  /** Requests under way at a time: of all owners, and of one. */
  readonly places: number;
  readonly placesOfOne: number;
  readonly maxWaiting?: number;
  readonly maxWaitingOfOne?: number;
  readonly maxWaitMs?: number;
};

/** Places for a pool with so many connections. One owner has at most a fifth of them. */
export const placesFor = (connections: number): PagePlacesOptions => ({
  places: Math.max(1, connections - LEFT_TO_OTHERS),
  placesOfOne: Math.max(1, Math.floor(connections / 5)),
});

/** Places of requests that are answered from memory: those of many owners, each of whom may search twice at a time. */
export const IN_MEMORY: PagePlacesOptions = { places: 64, placesOfOne: 2 };

type Waiting = { readonly begin: () => void; readonly timer: NodeJS.Timeout };

/** An account, or the address of callers without a key. */
type Owner = { readonly name: string; taken: number; readonly waiting: Set<Waiting> };

/**
 * Shares the pool of Postgres between those who ask for pages. Eight slow statements of one key used to make every page of everybody
 * else 503.
 *
 * A request keeps its place until its handler has ended, even if the caller got a 503 before: until then its statement runs. An owner
 * never has more than its places, even if the others are free. A statement may take 15 s, so places that were lent out would not be
 * back when somebody else needs them.
 *
 *   a place of the owner's and one of all are free ──► begins
 *   otherwise ──► waits in its owner's line; the owners with a line take turns
 *
 * Tested by test/http/page-places.test.ts and test/integration/fairness.test.ts.
 */
export class PagePlaces {
  readonly #options: Required<PagePlacesOptions>;
  /** Those who have a place or wait for one. */
  readonly #owners = new Map<string, Owner>();
  /** Those whose next request could begin if there were a place, in the order of their turns. */
  readonly #turns = new Set<Owner>();
  #free: number;
  #waiting = 0;

  constructor(options: PagePlacesOptions) {
    this.#options = {
      maxWaiting: MAX_WAITING,
      maxWaitingOfOne: MAX_WAITING_OF_ONE,
      maxWaitMs: MAX_WAIT_MS,
      ...options,
    };
    this.#free = options.places;
  }

  /** Runs `work` in a place of the owner. Rejects with `unavailable` when a bound of the line is reached. */
  async run<T>(name: string, work: () => Promise<T>): Promise<T> {
    const owner = this.#owners.get(name) ?? this.#add(name);
    if (this.#free > 0 && owner.taken < this.#options.placesOfOne) this.#take(owner);
    else await this.#wait(owner);
    try {
      return await work();
    } finally {
      this.#leave(owner);
    }
  }

  #add(name: string): Owner {
    const owner = { name, taken: 0, waiting: new Set<Waiting>() };
    this.#owners.set(name, owner);
    return owner;
  }

  #take(owner: Owner): void {
    owner.taken++;
    this.#free--;
  }

  #wait(owner: Owner): Promise<void> {
    const { maxWaiting, maxWaitingOfOne, maxWaitMs, placesOfOne } = this.#options;
    if (owner.waiting.size >= maxWaitingOfOne || this.#waiting >= maxWaiting) {
      this.#forgetIfDone(owner);
      return Promise.reject(busyError());
    }
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#stopWaiting(owner, entry);
        this.#forgetIfDone(owner);
        reject(busyError());
      }, maxWaitMs);
      const entry: Waiting = { begin: resolve, timer };
      owner.waiting.add(entry);
      this.#waiting++;
      if (owner.taken < placesOfOne) this.#turns.add(owner);
    });
  }

  #stopWaiting(owner: Owner, entry: Waiting): void {
    clearTimeout(entry.timer);
    owner.waiting.delete(entry);
    this.#waiting--;
    if (owner.waiting.size === 0) this.#turns.delete(owner);
  }

  #leave(owner: Owner): void {
    owner.taken--;
    this.#free++;
    if (owner.waiting.size > 0) this.#turns.add(owner);
    this.#forgetIfDone(owner);
    this.#serveNext();
  }

  /** Gives the place that was just left to the next in turn, if anybody may have it. */
  #serveNext(): void {
    const [owner] = this.#turns;
    if (owner === undefined || this.#free === 0) return;
    const [entry] = owner.waiting;
    this.#turns.delete(owner);
    this.#stopWaiting(owner, entry as Waiting);
    this.#take(owner);
    // To the end: the others have their turns first.
    if (owner.waiting.size > 0 && owner.taken < this.#options.placesOfOne) this.#turns.add(owner);
    (entry as Waiting).begin();
  }

  #forgetIfDone(owner: Owner): void {
    if (owner.taken === 0 && owner.waiting.size === 0) this.#owners.delete(owner.name);
  }
}

const busyError = () =>
  unavailableError(undefined, 'Too many requests of this account or address are waiting. Please retry.');
