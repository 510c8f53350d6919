import { putKeyScript } from '../scripts.js';
/** Writes a key's limit and status to Redis, where batch.lua reads them for each call. So a change applies to the next call. */
export class KeyStates {
    #stores;
    constructor(stores) {
        this.#stores = stores;
    }
    /** Sets limit and status in one step. Rejects when Redis cannot be reached. */
    async put(keyId, accountId, state) {
        const { redis, keys } = this.#stores;
        const name = keys.key(keys.shardOf(accountId), keyId);
        await redis.script(putKeyScript, 1, [name, String(state.limit), state.status]);
    }
}
//# sourceMappingURL=key-states.js.map