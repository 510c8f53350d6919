/** The owner of the holds of open calls: a gateway on one of its connections to Redis. */
export type HoldOwner = {
  /** The owner's id, as written into holds and leases. */
  readonly instance: string;
  /** Calls of this owner whose end Redis has not confirmed. */
  openCalls: number;
  /** To be called when one of these calls has ended. */
  readonly ended: () => void;
};

/**
 * Maximum number of former owners whose leases are renewed because they have open calls. At the bound, a new connection keeps the
 * present owner: its holds cannot be told from those made before, but no lease of an open call is given up.
 */
const MAX_FORMER = 32;

/**
 * After a reconnection, Redis may be in an older state than the gateway was told of (it restarted from an old file). Then holds
 * are back of calls whose settlement was confirmed, and nobody will settle them again. Nothing in such a hold tells it from that
 * of a call still open. So each connection has an owner id of its own, which stands in the holds made on it. The gateway renews an
 * owner's lease until the last of its calls has ended; then the sweep takes what holds are left, as it does for a dead gateway.
 *
 *   connection 1     connection 2     connection 3
 *   id ─────────────► id.2 ───────────► id.3          holds of new calls
 *   └ leased while one of its calls is open ┘
 */
export class HoldOwners {
  readonly #id: string;
  readonly #onEnded: () => void;
  #former: HoldOwner[] = [];
  #connections = 1;
  #present: HoldOwner;

  /** @param onEnded called each time a call of any owner has ended */
  constructor(id: string, onEnded: () => void) {
    this.#id = id;
    this.#onEnded = onEnded;
    this.#present = this.#newOwner(id);
  }

  /** The owner of the calls that are admitted now. */
  get present(): HoldOwner {
    return this.#present;
  }

  /** To be called for each new connection to Redis. */
  reconnected(): void {
    this.#former = this.#withOpenCalls();
    if (this.#former.length >= MAX_FORMER) return;
    this.#former.push(this.#present);
    this.#connections++;
    this.#present = this.#newOwner(`${this.#id}.${this.#connections}`);
  }

  /** The owners whose leases must be renewed. */
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
