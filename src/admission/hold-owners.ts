/** The owner of holds: a gateway during one of its connections to Redis. HoldOwners says why it is not the gateway as a whole. */
export type HoldOwner = {
  /** The owner's id, as written into holds and leases. */
  readonly instance: string;
  /** Calls of this owner whose end Redis has not confirmed. */
  openCalls: number;
  /** Call this when Redis has confirmed the end of one of these calls. */
  readonly ended: () => void;
};

/**
 * Maximum number of former owners whose leases are renewed because they have open calls. Beyond it, a new connection continues with
 * the present owner: holds of this connection then look like those of the one before, but no open call loses its lease.
 */
const MAX_FORMER = 32;

/**
 * After a reconnection, Redis may be in an older state than before (it restarted from an old file). The holds of calls whose
 * settlement it had confirmed are then back. Nobody will settle those calls again, and these holds look like those of open calls.
 * So each connection has its own owner id, which is written into the holds made on it. The gateway renews the lease of a former
 * owner until the last of that owner's calls has ended. Then the sweep ends the holds that this owner still has in Redis, as it
 * does for a dead gateway.
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

  /** Call this for each new connection to Redis: from then on, new calls have a new owner. */
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
