/** Who holds the money of open calls: a gateway, on one of its connections to Redis. */
export type HoldOwner = {
  /** As it stands in holds, and among the leases. */
  readonly instance: string;
  /** Calls whose end Redis has not confirmed. */
  openCalls: number;
  /** One of them has ended. */
  readonly ended: () => void;
};

/** Owners with open calls, besides the present one. While there are more, a new connection goes on with the present one. */
const MAX_FORMER = 32;

/**
 * A new connection may lead to a Redis that is older than what this gateway was told: then holds are back of calls whose end
 * was confirmed, and nobody will settle them again. They cannot be told from those of calls that go on, but by this: on
 * each connection the holds have an owner of its own, whose lease is renewed until the last of its calls has ended. What it
 * then still holds is swept, as are the holds of the dead.
 *
 *   connection 1     connection 2     connection 3
 *   id ─────────────► id.2 ───────────► id.3          holds of new calls
 *   └ leased while calls of it are open ┘
 */
export class HoldOwners {
  readonly #id: string;
  readonly #onEnded: () => void;
  #former: HoldOwner[] = [];
  #connections = 1;
  #present: HoldOwner;

  /** @param onEnded called each time that a call of any owner has ended */
  constructor(id: string, onEnded: () => void) {
    this.#id = id;
    this.#onEnded = onEnded;
    this.#present = this.#newOwner(id);
  }

  /** Of the calls that are admitted now. */
  get present(): HoldOwner {
    return this.#present;
  }

  /** There is a new connection to Redis. */
  reconnected(): void {
    this.#former = this.#withOpenCalls();
    if (this.#former.length >= MAX_FORMER) return;
    this.#former.push(this.#present);
    this.#connections++;
    this.#present = this.#newOwner(`${this.#id}.${this.#connections}`);
  }

  /** The instances that live. */
  leased(): string[] {
    this.#former = this.#withOpenCalls();
    return [this.#present, ...this.#former].map(({ instance }) => instance);
  }

  #withOpenCalls(): HoldOwner[] {
    return this.#former.filter(({ openCalls }) => openCalls > 0);
  }

  #newOwner(instance: string): HoldOwner {
    const owner: HoldOwner = {
      instance,
      openCalls: 0,
      ended: () => {
        owner.openCalls--;
        this.#onEnded();
      },
    };
    return owner;
  }
}
