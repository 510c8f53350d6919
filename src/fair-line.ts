import { assert } from './assert.ts';

type Owner<T> = { readonly name: string; taken: number; readonly waiting: Set<T> };

/**
 * Tracks how much of a scarce resource each owner has, and a line in which owners take turns, however many entries each has there.
 *
 *   owners with waiting entries, in turn:   a ──► b ──► c ──► a …      of each, the entry that came first
 *
 * The line does not know how much there is, nor how much of it one owner may have. The code that uses it does: it asks `next` whose
 * turn it is, grants the resource, and reports that (`served`, `took`, `left`).
 *
 * Tested by test/fair-line.test.ts, upstream/shares.test.ts (connections) and http/page-permits.test.ts.
 */
export class FairLine<T> {
  readonly #maxWaiting: number;
  readonly #maxWaitingOfOne: number;
  /** The owners that have something or wait for it. */
  readonly #owners = new Map<string, Owner<T>>();
  /** The owners with waiting entries, in the order of their turns. */
  readonly #turns = new Set<Owner<T>>();
  /** All waiting entries, oldest first. */
  readonly #waiting = new Set<T>();

  constructor(maxWaiting: number, maxWaitingOfOne: number) {
    this.#maxWaiting = maxWaiting;
    this.#maxWaitingOfOne = maxWaitingOfOne;
  }

  /** Waiting entries. */
  get size(): number {
    return this.#waiting.size;
  }

  get oldest(): T | undefined {
    const [oldest] = this.#waiting;
    return oldest;
  }

  took(name: string): void {
    this.#owner(name).taken++;
  }

  left(name: string): void {
    const owner = this.#owner(name);
    assert(owner.taken > 0);
    owner.taken--;
    this.#forgetIfDone(owner);
  }

  takenBy(name: string): number {
    return this.#owners.get(name)?.taken ?? 0;
  }

  hasRoomFor(name: string): boolean {
    const ofOne = this.#owners.get(name)?.waiting.size ?? 0;
    return this.#waiting.size < this.#maxWaiting && ofOne < this.#maxWaitingOfOne;
  }

  /** The caller must have checked `hasRoomFor`. */
  wait(name: string, entry: T): void {
    const owner = this.#owner(name);
    owner.waiting.add(entry);
    this.#waiting.add(entry);
    this.#turns.add(owner);
  }

  /** The entry no longer waits. @returns whether it did */
  remove(name: string, entry: T): boolean {
    const owner = this.#owners.get(name);
    if (owner === undefined || !this.#waiting.delete(entry)) return false;
    owner.waiting.delete(entry);
    if (owner.waiting.size === 0) this.#turns.delete(owner);
    this.#forgetIfDone(owner);
    return true;
  }

  /**
   * The entry whose turn it is. It stays in line until `served`.
   *
   * @param limit  owners that have this much have no turn. Skipping them is cheap: few can have much
   * @param mayTake  whether the owner may have one more, by another rule
   */
  next(limit: number, mayTake: (name: string) => boolean = () => true): T | undefined {
    for (const { name, taken, waiting } of this.#turns) {
      if (taken >= limit || !mayTake(name)) continue;
      const [entry] = waiting;
      return entry;
    }
    return undefined;
  }

  /** The entry leaves the line. */
  served(name: string, entry: T): void {
    this.remove(name, entry);
    this.goesLast(name);
  }

  /** If the owner waits, its next turn is after the others. */
  goesLast(name: string): void {
    const owner = this.#owners.get(name);
    if (owner !== undefined && this.#turns.delete(owner)) this.#turns.add(owner);
  }

  #owner(name: string): Owner<T> {
    let owner = this.#owners.get(name);
    if (owner === undefined) {
      owner = { name, taken: 0, waiting: new Set() };
      this.#owners.set(name, owner);
    }
    return owner;
  }

  #forgetIfDone(owner: Owner<T>): void {
    if (owner.taken === 0 && owner.waiting.size === 0) this.#owners.delete(owner.name);
  }
}
