import { Command, Redis } from 'ioredis';
import { ForeignRedis, INSTALLATION_KEY, isNews } from './installation.js';
import { CLAIM_EVERY_MS, OwnedStore } from './owned-store.js';
import { addressOf } from './redis-node.js';
import { RedisNotSent } from './redis-store.js';
import { StartRefused } from './start-refused.js';
export { INSTALLATION_KEY } from './installation.js';
export { byStore, RedisNotCarriedOut, RedisNotSent } from './redis-store.js';
export { defineScript } from './script.js';
/**
 * The only owner of ioredis. This client never resends or queues a command by itself (docs/design.md, 'Redis'): a script that
 * moves money must not run twice because a socket broke.
 *
 *   connected ──claim: whose data are these?──► ready ──a script or the next check finds another id──┐
 *       ▲                └─ another's: drop the connection ◄─────────────────────────────────────────┘
 *       └── again after 50 … 250 ms ◄──┘
 *
 * Tested by test/platform/installation.test.ts and test/integration/redis-away.test.ts.
 */
export class RedisClient extends OwnedStore {
    /** `host:port` of the server. */
    address;
    #redis;
    #name;
    #log;
    /** Number of connections in a row whose id could not be compared or was another's. It lengthens the pause before the next. */
    #refusals = 0;
    #reported = null;
    #claimTimer;
    #closing = false;
    constructor(options, log) {
        super(INSTALLATION_KEY);
        this.address = addressOf(options.url);
        this.#name = options.name;
        this.#log = log;
        this.#redis = new Redis(options.url, {
            connectionName: options.name,
            lazyConnect: true,
            autoResendUnfulfilledCommands: false,
            maxRetriesPerRequest: 0,
            enableOfflineQueue: false,
            enableAutoPipelining: false,
            commandTimeout: options.commandTimeoutMs,
            connectTimeout: 2_000,
            noDelay: true,
            // A connection on which Redis stays silent is dropped: its host may be gone.
            socketTimeout: options.commandTimeoutMs * 3,
            // READONLY: the primary has become a replica. A new connection finds the new primary.
            reconnectOnError: (error) => error.message.startsWith('READONLY'),
            // The same pauses as those of the connection for batches (script-connection.ts).
            retryStrategy: (attempt) => (this.#closing ? null : Math.min(50 * (attempt + this.#refusals), 250)),
        });
        // ioredis reports every failed attempt; one log line when the state changes is enough.
        this.#redis.on('error', (error) => this.#report(error));
        this.#redis.on('ready', () => void this.#onConnected());
        this.#redis.on('close', () => {
            this.isOurs = false;
        });
    }
    /** Connects, or rejects with the reason: at start, an operator wants to see the error rather than a silent retry. */
    async connect() {
        try {
            await this.#redis.connect();
        }
        catch (error) {
            // ioredis says 'Connection is closed.' here, and the reason in an event before.
            const reason = this.#reported instanceof Error ? this.#reported : error;
            throw new StartRefused(`cannot connect to redis at ${this.address}: ${reason.message}`, { cause: reason });
        }
    }
    async claim(installation) {
        await super.claim(installation);
        this.#claimTimer ??= setInterval(() => {
            if (this.ready)
                void this.compareOwner(installation);
        }, CLAIM_EVERY_MS).unref();
    }
    get ready() {
        return this.isOurs && this.#redis.status === 'ready';
    }
    send(name, args) {
        const command = new Command(name, args, { replyEncoding: 'utf8' });
        return this.#redis.sendCommand(command);
    }
    async #onConnected() {
        this.isOurs = false;
        try {
            if (this.installation !== null)
                await this.scripts.compare(this.installation);
        }
        catch (error) {
            this.#refusals++;
            this.#report(error);
            if (error instanceof ForeignRedis)
                this.tellForeign(error);
            // If the comparison failed because the connection ended, ioredis is already making the next one.
            if (this.#redis.status === 'ready')
                this.#redis.disconnect(true);
            return;
        }
        this.#refusals = 0;
        if (this.#reported !== null)
            this.#log.warn({ redis: this.#name, node: this.address }, 'redis connection is back');
        this.#reported = null;
        this.becomeReady();
    }
    /** Stops using this Redis, but reconnects: somebody may flush it, or its address may lead to the right Redis again. */
    refuse(error) {
        if (!this.ready)
            return;
        this.isOurs = false;
        this.#report(error);
        this.#redis.disconnect(true);
        this.tellForeign(error);
    }
    #report(error) {
        if (this.#closing || !isNews(error, this.#reported))
            return;
        this.#reported = error;
        this.#log.warn({ err: error, redis: this.#name, node: this.address }, 'redis connection lost or refused');
    }
    async ping() {
        await this.command('ping', []);
    }
    /** Waits for the commands under way, then closes. Safe to call in any state. */
    async close() {
        this.#closing = true;
        clearInterval(this.#claimTimer);
        if (this.ready) {
            await this.#redis.quit().catch(() => this.#redis.disconnect());
        }
        else {
            this.#redis.disconnect();
        }
    }
    /** Drops the connection immediately. */
    destroy() {
        this.#closing = true;
        clearInterval(this.#claimTimer);
        this.#redis.disconnect();
    }
}
/** Whether a command failed because its key has another type. Tollgate never writes that type there, so somebody else did. */
export const isWrongType = (error) => error instanceof Error && /WRONGTYPE/.test(error.message);
/** Whether Redis did not answer in time. It is unknown whether the command was carried out. */
export const isCommandTimeout = (error) => error instanceof Error && error.message.startsWith('Command timed out');
/** Whether the error means that Redis is unavailable or slow, rather than that the command is wrong. */
export function isRedisUnavailable(error) {
    if (error instanceof RedisNotSent || error instanceof ForeignRedis)
        return true;
    if (!(error instanceof Error))
        return false;
    return /^(Command timed out|Connection is closed|Stream isn't writeable|Reached the max retries|LOADING|MASTERDOWN|READONLY)/.test(error.message);
}
//# sourceMappingURL=redis.js.map