/**
 * Maximum number of former owners whose leases are renewed because they have open calls. At the bound, a new connection goes on
 * with the present owner: holds of this connection then look like those of the one before, but no open call loses its lease.
 */
const MAX_FORMER = 32;
/**
 * After a reconnection, Redis may be in an older state than before (it restarted from an old file). Then it has again the holds
 * of calls whose settlement it had confirmed. Nobody will settle those calls again, and such a hold looks like that of an open
 * call. So each connection has an owner id of its own, which is written into the holds made on it. The gateway renews the lease
 * of a former owner until the last of that owner's calls has ended. Then the sweep ends the holds that this owner still has in
 * Redis, as it does for a dead gateway.
 *
 *   connection 1     connection 2     connection 3
 *   id ─────────────► id.2 ───────────► id.3          holds of new calls
 *   └ leased while one of its calls is open ┘
 */
export class HoldOwners {
    #id;
    #onEnded;
    #former = [];
    #connections = 1;
    #present;
    /** @param onEnded called each time a call of any owner has ended */
    constructor(id, onEnded) {
        this.#id = id;
        this.#onEnded = onEnded;
        this.#present = this.#newOwner(id);
    }
    /** The owner of the calls that are admitted now. */
    get present() {
        return this.#present;
    }
    /** To be called for each new connection to Redis: from then on, new calls have a new owner. */
    reconnected() {
        this.#former = this.#withOpenCalls();
        if (this.#former.length >= MAX_FORMER)
            return;
        this.#former.push(this.#present);
        this.#connections++;
        this.#present = this.#newOwner(`${this.#id}.${this.#connections}`);
    }
    /** The owners whose leases must be renewed. */
    leased() {
        this.#former = this.#withOpenCalls();
        return [this.#present, ...this.#former].map(({ instance }) => instance);
    }
    #withOpenCalls() {
        return this.#former.filter(({ openCalls }) => openCalls > 0);
    }
    #newOwner(instance) {
        const owner = {
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
//# sourceMappingURL=hold-owners.js.map