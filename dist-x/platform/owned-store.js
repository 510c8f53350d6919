import { GuardedScripts } from './guarded-scripts.js';
import { claimScript, ForeignRedis } from './installation.js';
import { RedisNotSent } from './redis-store.js';
/**
 * Interval at which the installation's id is compared while there is a connection, because a flush does not end the connection. This
 * is for a process without calls: the writer's scripts check the id, and so do those that load a wallet or a key for a call after
 * a flush. Checking every second used 0.07 % of a core per process.
 */
export const CLAIM_EVERY_MS = 5_000;
/**
 * What one server (`RedisClient`) and one shard of a cluster (`ShardClient`) have in common: nothing is sent while their data are
 * not ours, and listeners are told when that changes.
 */
export class OwnedStore {
    /** The owner of a server, or of one shard of a cluster, may name all its keys. */
    isCluster = false;
    scripts;
    /** Null before `claim`: until then no id is compared, and scripts run without their guard. */
    installation = null;
    /** True when there is a connection, and the data have our installation's id. */
    isOurs = false;
    #readyListeners = [];
    #foreignListeners = [];
    /** @param installationKey  the Redis key that has the installation's id */
    constructor(installationKey) {
        this.scripts = new GuardedScripts(installationKey, (name, args) => this.send(name, args));
    }
    shard() {
        return this;
    }
    onReady(listener) {
        this.#readyListeners.push(listener);
    }
    onForeign(listener) {
        this.#foreignListeners.push(listener);
    }
    command(name, args) {
        return this.ready ? this.send(name, args) : Promise.reject(new RedisNotSent());
    }
    async script(script, numberOfKeys, keysAndArgs) {
        if (!this.ready)
            throw new RedisNotSent();
        try {
            return await this.scripts.run(this.installation, script, numberOfKeys, keysAndArgs);
        }
        catch (error) {
            if (error instanceof ForeignRedis)
                this.refuse(error);
            throw error;
        }
    }
    async confirmOwner() {
        await this.script(claimScript, 0, []);
    }
    /**
     * Binds this store to an installation. From now on the id in Redis is compared: at once, with every script, every five seconds,
     * and after each reconnection before the store counts as ready. A Redis without an id becomes ours, with whatever data it has;
     * ledger/ownership.ts judges those data when a process starts.
     *
     * @throws ForeignRedis when Redis has another installation's data
     */
    async claim(installation) {
        this.installation = installation;
        await this.scripts.compare(installation);
    }
    /** Compares the id of data that were ours, because a flush does not end the connection. */
    async compareOwner(installation) {
        try {
            await this.scripts.compare(installation);
        }
        catch (error) {
            // Any other error is ignored: the next command meets and reports it.
            if (error instanceof ForeignRedis)
                this.refuse(error);
        }
    }
    becomeReady() {
        this.isOurs = true;
        for (const listener of this.#readyListeners)
            listener();
    }
    tellForeign(error) {
        for (const listener of this.#foreignListeners)
            listener(error);
    }
}
//# sourceMappingURL=owned-store.js.map