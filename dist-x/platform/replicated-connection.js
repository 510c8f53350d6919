import { RedisNotSent } from './redis.js';
import { ScriptConnection } from './script-connection.js';
/** How many replicas must have a trip, and how often too few had it in time. All connections of a process share one. */
export class ReplicaDemand {
    replicas;
    /** How long Redis may wait for them. */
    timeoutMs;
    /** Trips that too few replicas had in time, or that Redis refused because it has too few (`min-replicas-to-write`). */
    missed = 0;
    constructor(replicas, commandTimeoutMs) {
        this.replicas = replicas;
        // A trip may arrive while another is waited for. With half of the timeout for either, it ends within the whole: unless Redis itself
        // is slow, and then falls silent. Then it takes up to twice the timeout.
        this.timeoutMs = Math.max(1, Math.floor(commandTimeoutMs / 2));
    }
}
/** Redis has carried out a trip, and too few replicas have it. A failover may lose it, so its outcome is unknown. */
export class TooFewReplicas extends Error {
    constructor(had, { replicas, timeoutMs }) {
        super(`${had} replicas had a batch after ${timeoutMs} ms, but REDIS_WAIT_REPLICAS is ${replicas}`);
        this.name = 'TooFewReplicas';
    }
}
/** @param demand null: trips count as soon as Redis has carried them out */
export function tripConnection(options, log, demand) {
    const connection = new ScriptConnection(options, log);
    return demand === null ? connection : new ReplicatedConnection(connection, options.script.sha, demand);
}
/**
 * A connection whose trips count only when enough replicas have them (REDIS_WAIT_REPLICAS).
 *
 *   trips ──► held ──► [ EVALSHA … EVALSHA, WAIT ] in one write ──► replies kept ──► WAIT's number
 *              ▲                                                                      │ enough: the replies are passed on
 *              └── while a WAIT is under way ◄────────────────────────────────────────┘ too few: the trips are lost
 *
 * Redis reads no further commands of a connection that waits. Sent one by one, each trip would wait for all WAITs before its own.
 * So what arrives meanwhile is held here and shares the next WAIT: a trip takes two waits at most, however many there are. When too
 * few replicas have a group, what is held has not been sent, and is refused as such: it need not find out the same.
 *
 * A trip that writes nothing, such as a settlement that is repeated, must not count before what it relies on has reached the
 * replicas. Redis up to 7.0 waits for all that it had written when the trip ran. Later versions, and Valkey, wait for the last write of
 * this connection. That is enough: a new connection begins with renewals of leases (trips.ts), which are written after
 * everything that an earlier connection wrote.
 *
 * Tested by test/platform/replicated-connection.test.ts and test/integration/replicas.test.ts.
 */
class ReplicatedConnection {
    #connection;
    #sha;
    #demand;
    #wait;
    #held = [];
    #group = null;
    #isScheduled = false;
    /** @param sha of the script that the connection runs */
    constructor(connection, sha, demand) {
        this.#connection = connection;
        this.#sha = sha;
        this.#demand = demand;
        const args = ['WAIT', String(demand.replicas), String(demand.timeoutMs)];
        this.#wait = Buffer.from(`*3\r\n${args.map((arg) => `$${arg.length}\r\n${arg}\r\n`).join('')}`);
    }
    connect() {
        return this.#connection.connect();
    }
    connectInBackground() {
        this.#connection.connectInBackground();
    }
    onReady(listener) {
        this.#connection.onReady(listener);
    }
    get ready() {
        return this.#connection.ready;
    }
    reconnect(reason) {
        this.#connection.reconnect(reason);
    }
    send(trip, listener) {
        this.sendWire(trip.take(this.#sha), listener);
    }
    sendWire(wire, listener) {
        if (!this.ready) {
            listener.onLost(new RedisNotSent());
            return;
        }
        this.#held.push({ wire, listener });
        if (this.#group !== null || this.#isScheduled)
            return;
        this.#isScheduled = true;
        // After the flush that sends now, which may send more. The shards of a cluster flush one by one: the first goes alone, and the
        // others share the next WAIT.
        process.nextTick(this.#sendHeld);
    }
    close() {
        const closed = this.#connection.close();
        this.#refuseHeld();
        return closed;
    }
    #sendHeld = () => {
        this.#isScheduled = false;
        if (!this.ready)
            this.#refuseHeld();
        if (this.#held.length === 0)
            return;
        const trips = this.#held;
        this.#held = [];
        this.#connection.inOneWrite(() => {
            const group = new Group(trips.length, this.#demand);
            this.#group = group;
            for (const { wire, listener } of trips)
                this.#connection.sendWire(wire, group.listenerOf(listener));
            this.#sendWait(group);
        });
    };
    #sendWait(group) {
        const listener = {
            onReply: (bytes, start, end) => this.#onWaited(group, Number(bytes.toString('latin1', start, end))),
            onLost: (error) => this.#onFailed(group, error),
        };
        this.#connection.sendWire(this.#wait, listener, false);
    }
    #onWaited(group, had) {
        if (!(had >= this.#demand.replicas)) {
            this.#demand.missed += group.answered;
            this.#onFailed(group, new TooFewReplicas(had, this.#demand));
            return;
        }
        group.passOn();
        if (group.unanswered > 0) {
            // Redis had forgotten the script, so the trip was sent again, behind this WAIT.
            if (this.ready)
                this.#sendWait(group);
            // Being closed. RedisNotSent would say that the trip was certainly not carried out.
            else
                this.#onFailed(group, new Error('Connection is closed.'));
            return;
        }
        this.#group = null;
        // After this turn, so that what its callers send next is in the next group.
        this.#isScheduled = true;
        setImmediate(this.#sendHeld);
    }
    #onFailed(group, error) {
        if (this.#group === group)
            this.#group = null;
        group.lose(error);
        this.#refuseHeld();
    }
    #refuseHeld() {
        for (const { listener } of this.#held.splice(0))
            listener.onLost(new RedisNotSent());
    }
}
/** Trips that share a WAIT. */
class Group {
    /** Trips that have neither a reply nor an error yet. */
    unanswered;
    #demand;
    #answered = [];
    #error = null;
    constructor(trips, demand) {
        this.unanswered = trips;
        this.#demand = demand;
    }
    get answered() {
        return this.#answered.length;
    }
    listenerOf(listener) {
        return {
            onReply: (bytes, start, end) => {
                this.unanswered--;
                // The bytes are those of the read buffer, so they must be copied to outlast this call.
                if (this.#error === null)
                    this.#answered.push({ listener, reply: Buffer.from(bytes.subarray(start, end)) });
                else
                    listener.onLost(this.#error);
            },
            // An error does not wait for replicas: Redis refused the trip, or its outcome is unknown anyway.
            onLost: (error) => {
                this.unanswered--;
                if (error.message.startsWith('NOREPLICAS'))
                    this.#demand.missed++;
                listener.onLost(error);
            },
        };
    }
    passOn() {
        for (const { listener, reply } of this.#answered.splice(0))
            listener.onReply(reply, 0, reply.length);
    }
    lose(error) {
        this.#error = error;
        for (const { listener } of this.#answered.splice(0))
            listener.onLost(error);
    }
}
//# sourceMappingURL=replicated-connection.js.map