import { systemClock } from '../../platform/clock.js';
import { RedisNotSent } from '../../platform/redis.js';
import { overWithin, Sleeper } from '../../platform/timing.js';
import { layoutOf } from '../layout.js';
import { EventWait } from './event-wait.js';
import { Flusher } from './flusher.js';
import { backoffMs, Pace, SHORT_PAUSE_MS } from './pace.js';
import { ReadOver } from './read-over.js';
import { deleteBatch, isAnyWaiting, readBatch, ShardsAway } from './stream.js';
import { StreamNotices } from './stream-notices.js';
import { WriterSession } from './writer-session.js';
/** How much longer than its timeout `stop` may take, so that the writer can still log how many events it leaves. */
const GRACE_MS = 500;
/**
 * A writer that has failed for so long gives up its shards, so that a writer that does reach both stores can have them. It comes back
 * when it is connected to Redis again.
 */
const GIVE_UP_MS = 5_000;
/**
 * Carries usage events from the streams into Postgres, in batches. Each event takes effect once, and is deleted from its stream
 * only after the commit.
 *
 *   connect ──► read a batch ──► BEGIN, lock, still there?, store, COMMIT ──► delete ──┐
 *      ▲             ▲    ▲                    │        │                              │
 *      │             │    └── read ahead ◄─────┼────────┘                              │
 *      │             └─ none: wait for some ◄──┼───────────────────────────────────────┘
 *      └─ wait 50 ms … 1 s ◄── any failure: events stay in the stream
 *
 * If the writer is killed between commit and deletion, the next writer reads the same events again. COPY fails for them, so the
 * batch is stored by `storeEntries`, and calls that are in Postgres already change nothing. Several writers share the shards
 * (`OwnedShards`): those of one that ended are taken within a second or two, those of one that is suspended after 5 to 15 s.
 */
export class UsageWriter {
    #options;
    #source;
    #notices;
    #batchSize;
    #pace = new Pace(performance.now());
    #events;
    /** An event ended the last wait, and the writer has found none to store since. */
    #wokenInVain = false;
    #session;
    #flusher;
    #stopping = false;
    /** The timeout of `stop` is over. */
    #outOfTime = false;
    #sleeper = new Sleeper();
    #running = null;
    #failures = 0;
    #failingSince = 0;
    #reported = '';
    #ahead = null;
    #deletion = Promise.resolve();
    #backlog = null;
    constructor(options) {
        this.#options = options;
        this.#notices = new StreamNotices(options.log);
        this.#flusher = new Flusher(options);
        this.#source = {
            ...options,
            readOver: new ReadOver(),
            onNewer: (shard, events) => this.#notices.newer(shard, events),
            onLook: (shard, isDamaged) => this.#notices.looked(shard, isDamaged),
            onAway: (shard) => this.#session.leaveOut([shard]),
        };
        const { redisUrl: url, keys, log } = options;
        this.#events = url === null ? null : new EventWait({ url, keys, log });
        this.#batchSize = options.batchSize ?? 10_000;
        this.#session = new WriterSession({ ...options, clock: options.clock ?? systemClock }, layoutOf(options));
    }
    start() {
        this.#running ??= this.#run();
    }
    /**
     * Stores everything that is in the streams now, then ends the session. Failures are retried until `timeoutMs` is over. Events
     * that are not stored by then stay for the next writer, and a line is logged.
     */
    async stop(timeoutMs = 5_000) {
        this.#stopping = true;
        // The batch that was read ahead lacks the events that came after it was read. So drop it: the last look must be a new one.
        this.#ahead = null;
        this.#session.lookSoon();
        this.#sleeper.wake();
        const timer = setTimeout(() => {
            this.#outOfTime = true;
            this.#session.close();
            this.#sleeper.wake();
        }, timeoutMs);
        // The writer notices the timeout only between two commands, and a slow Redis may delay each. Do not wait for that.
        await overWithin(this.#running ?? Promise.resolve(), timeoutMs + GRACE_MS);
        clearTimeout(timer);
    }
    stats() {
        return {
            ...this.#flusher.stats(),
            newerEvents: this.#notices.newerEvents,
            backlog: this.#backlog,
            ownedShards: this.#session.shards.length,
            working: this.#failures === 0,
        };
    }
    /** Whether this writer has the shard. What one of several writers must do is done by the one that has shard 0. */
    owns(shard) {
        return this.#session.shards.includes(shard);
    }
    async #run() {
        let emptied = false;
        while (!emptied && !this.#outOfTime) {
            // The last look at the streams must begin after the writer was told to stop.
            const last = this.#stopping;
            try {
                const more = await this.#cycle();
                this.#recovered();
                if (more)
                    continue;
                emptied = last;
                if (!this.#stopping)
                    await this.#pause();
            }
            catch (error) {
                this.#failed(error);
                if (!this.#outOfTime)
                    await this.#sleeper.sleep(backoffMs(this.#failures));
            }
        }
        this.#session.close();
        this.#events?.close();
        if (!emptied)
            this.#options.log.warn({ events: this.#backlog }, 'writer stops and leaves events for the next writer');
    }
    async #pause() {
        // Events of locked shards have waited already, so pause only briefly.
        if (this.#flusher.hasPassedOver)
            await this.#sleeper.sleep(SHORT_PAUSE_MS);
        else if (!this.#mayWaitForEvents || !(await this.#waitForEvent()))
            await this.#sleeper.sleep(this.#pace.pauseMs);
        else
            return;
        this.#wokenInVain = false;
    }
    /**
     * Whether to block on Redis until an event arrives. Not while another writer has shards: they may become free at any moment.
     * Not while events come steadily: each would be stored at once, and storing many together costs less per event.
     */
    get #mayWaitForEvents() {
        return !this.#wokenInVain && this.#pace.isQuiet && this.#session.hasAllShards;
    }
    /** @returns false when it could not wait */
    async #waitForEvent() {
        if (this.#events === null)
            return false;
        const end = await Promise.race([
            this.#sleeper.woken(),
            this.#events.next(this.#session.shards, this.#source.readOver),
        ]);
        // Until a batch proves the opposite: then the next wait would end at once too, and the writer would never pause.
        this.#wokenInVain = end === 'event';
        return end !== 'cannot';
    }
    /** Stores one batch, if there are events. @returns whether to continue at once */
    async #cycle() {
        if (!this.#session.isOpen) {
            // A new session would take shards away from writers that work.
            if (this.#failures > 0 && !this.#options.redis.ready)
                throw new RedisNotSent();
            // What was read ahead may be of shards that another writer has by now.
            this.#ahead = null;
        }
        const session = await this.#session.ready(() => this.#endWork());
        const ahead = this.#ahead;
        this.#ahead = null;
        // A new read would find the entries again whose deletion is still under way, so wait for the deletion.
        if (ahead === null)
            await this.#deletion;
        if (this.#pace.isQuiet && !(await isAnyWaiting(this.#source, this.#session.usableShards()))) {
            this.#pace.found(0, performance.now());
            this.#backlog = 0;
            return false;
        }
        const batch = (await ahead) ?? (await readBatch(this.#source, this.#session.usableShards(), this.#batchSize, null));
        this.#pace.found(batch.size, performance.now());
        this.#backlog = batch.size + batch.behind;
        if (batch.size === 0) {
            await this.#deletion;
            return false;
        }
        this.#wokenInVain = false;
        const stored = await this.#flusher.flush(session, batch, {
            stopping: this.#stopping,
            onStoring: (part) => this.#readAhead(part),
        });
        if (stored === 'nothing') {
            this.#ahead = null;
            return true;
        }
        // Other processes have locked all shards of the batch. While stopping, continue at once: the next flush waits for a lock.
        if (stored === 'locked')
            return this.#stopping;
        await this.#options.afterCommit?.();
        const previous = this.#deletion;
        const deletion = deleteBatch(this.#options, stored);
        // While there is more to store, this deletion is awaited one batch later, and its failure is thrown there. Without this line
        // Node would report an unhandled rejection until then. Entries that were not deleted are read again.
        deletion.catch(() => { });
        this.#deletion = deletion;
        await previous;
        this.#backlog = stored.behind;
        const leftOut = batch.size - stored.size;
        const more = stored.behind > (this.#stopping ? 0 : leftOut);
        if (!more)
            await deletion;
        return more;
    }
    /** Reads and prepares the next batch (8 µs of the writer's CPU per event) while Postgres stores this one (11 µs per event). */
    #readAhead(batch) {
        if (batch.behind === 0)
            return;
        this.#ahead = this.#deletion.then(() => readBatch(this.#source, this.#session.usableShards(), this.#batchSize, batch));
        // If this read fails, the next cycle throws its error. If the flush fails as well, only the flush's error is reported.
        this.#ahead.catch(() => { });
    }
    /** Ends all work on the streams, so that another writer finds no event that is stored already. */
    async #endWork() {
        this.#ahead = null;
        await this.#deletion;
    }
    /** Logs one line when the cause changes, so that an outage of an hour does not fill the disk. */
    #failed(error) {
        const now = performance.now();
        if (this.#failures++ === 0)
            this.#failingSince = now;
        if (now - this.#failingSince >= GIVE_UP_MS)
            this.#session.close();
        if (error instanceof ShardsAway)
            this.#session.leaveOut(error.shards);
        this.#ahead = null;
        this.#deletion = Promise.resolve();
        const reason = error instanceof Error ? error.message : String(error);
        if (reason === this.#reported)
            return;
        this.#reported = reason;
        this.#options.log.warn({ err: error }, 'writer cannot work, events wait in the stream');
    }
    #recovered() {
        if (this.#failures > 0)
            this.#options.log.info({ failures: this.#failures }, 'writer works again');
        this.#failures = 0;
        this.#reported = '';
    }
}
//# sourceMappingURL=writer.js.map