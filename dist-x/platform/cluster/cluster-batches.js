import { RedisNotCarriedOut, RedisNotSent } from '../redis.js';
import { tripConnection } from '../replicated-connection.js';
import { parseClusterUrl } from './cluster-url.js';
import { hostOf, readRefusal } from './slots.js';
/** How often a trip follows MOVED. Nodes that disagree could send it to and fro for ever. */
const MAX_MOVES = 5;
/** How long after the arrival of a new node the connections that no shard uses are closed. */
const UNUSED_MS = 10_000;
/** The connections for batches to the nodes of a cluster: one for each node, which all its shards share. */
export class ClusterBatches {
    shards;
    #options;
    #log;
    #urlOf;
    #demand;
    #connections = new Map();
    #isClosed = false;
    /** @param options.url  that of the cluster @param demand for each node: how many of its replicas must have a trip */
    constructor(cluster, options, log, demand = null) {
        this.#options = options;
        this.#log = log;
        this.#demand = demand;
        this.#urlOf = parseClusterUrl(options.url).urlOf;
        this.shards = cluster.shards.map((shard) => new ShardBatches(shard, options.script.sha, (address) => this.connectionTo(address)));
    }
    /** Connects to the nodes that have shards now, or rejects with the reason. */
    async connect() {
        const addresses = new Set(this.shards.map(({ client }) => client.address));
        await Promise.all(Array.from(addresses, (address) => this.#make(address).connect()));
        for (const shard of this.shards)
            shard.start();
    }
    /** @returns null after `close` */
    connectionTo(address) {
        const known = this.#connections.get(address);
        if (known !== undefined)
            return known;
        if (this.#isClosed)
            return null;
        const connection = this.#make(address);
        connection.connectInBackground();
        // A new node often takes the place of another.
        setTimeout(() => this.#closeUnused(), UNUSED_MS).unref();
        return connection;
    }
    /** Whether trips can be sent to this node. */
    isReady(address) {
        return this.#connections.get(address)?.ready ?? false;
    }
    #closeUnused() {
        const used = new Set(this.shards.map(({ client }) => client.address));
        for (const [address, connection] of this.#connections) {
            if (used.has(address))
                continue;
            this.#connections.delete(address);
            void connection.close();
        }
    }
    #make(address) {
        const { meterOf, ...options } = this.#options;
        const connection = tripConnection({ ...options, url: this.#urlOf(address), meter: meterOf?.(address) }, this.#log, this.#demand);
        this.#connections.set(address, connection);
        connection.onReady(() => {
            for (const shard of this.shards)
                if (shard.client.address === address)
                    shard.check();
        });
        return connection;
    }
    async close() {
        this.#isClosed = true;
        await Promise.all(Array.from(this.#connections.values(), (connection) => connection.close()));
    }
}
/**
 * Sends the trips of one shard to the node that has it.
 *
 * Whose data they are is known from `ShardClient`, which compares the installation's id. That is enough: batch.lua charges only
 * wallets and keys that were loaded, and loading compares the id in the same step.
 */
class ShardBatches {
    client;
    #sha;
    #connectionTo;
    #listeners = [];
    #connection = null;
    constructor(client, sha, connectionTo) {
        this.client = client;
        this.#sha = sha;
        this.#connectionTo = connectionTo;
    }
    start() {
        this.client.onReady(() => this.check());
        this.check();
    }
    /** The shard may have another node, or its node another connection. */
    check() {
        this.#connection = this.#connectionTo(this.client.address);
        if (!this.ready)
            return;
        for (const listener of this.#listeners)
            listener();
    }
    get ready() {
        return this.client.ready && (this.#connection?.ready ?? false);
    }
    /** Calls `listener` each time trips can be sent again: after a reconnection, or to another node. */
    onReady(listener) {
        this.#listeners.push(listener);
    }
    /** Sends a trip. If a node refuses it because of its slot, it goes to the right node, or is lost with `RedisNotSent`. */
    send(trip, listener) {
        const wire = trip.take(this.#sha);
        if (this.#connection !== null && this.ready)
            this.#sendTo(this.#connection, wire, listener, 0);
        else
            listener.onLost(new RedisNotSent());
    }
    #sendTo(connection, wire, listener, moves) {
        const askedAt = this.client.address;
        connection.sendWire(wire, {
            onReply: (bytes, start, end) => listener.onReply(bytes, start, end),
            onLost: (error) => {
                const refusal = readRefusal(error.message, hostOf(askedAt));
                if (refusal === null)
                    return listener.onLost(error);
                // Nothing was carried out. A trip does not wait for its slot: its callers are refused, and its settlements come again.
                if (!this.client.follow(refusal.address) || moves >= MAX_MOVES) {
                    return listener.onLost(new RedisNotCarriedOut(error.message));
                }
                const right = this.#connectionTo(this.client.address);
                this.#connection = right;
                if (right?.ready)
                    this.#sendTo(right, wire, listener, moves + 1);
                else
                    listener.onLost(new RedisNotCarriedOut(error.message));
            },
        });
    }
}
//# sourceMappingURL=cluster-batches.js.map