import { byStore, isWrongType } from '../../platform/redis.js';
import { deleteEntriesScript, deleteStoredScript } from '../scripts.js';
import { decodeUsageEvent, isEvent, isNewerEvent } from '../usage-event.js';
import { CallRows } from './call-rows.js';
import { CallSums } from './call-sums.js';
function decode(shard, id, fields) {
    // Events of a newer version throw no exception, because one look at a stream may meet 20 000 of them (`MAX_READ_OVER`).
    if (isNewerEvent(fields[0]))
        return { shard, id, fields, event: null, error: 'of a newer version', isNewer: true };
    try {
        if (!isEvent(fields[0]))
            throw new Error('usage event: no field e1');
        return { shard, id, fields, event: decodeUsageEvent(fields[1]), error: '', isNewer: false };
    }
    catch (error) {
        return { shard, id, fields, event: null, error: error.message, isNewer: false };
    }
}
/** Maximum number of entries that one command reads. A longer command would delay calls in Redis. */
const PAGE = 1_000;
/**
 * About how many events of a newer version one look at a stream skips at most: 20 000 take about 50 ms. The next look continues
 * after them.
 */
const MAX_READ_OVER = 20_000;
/**
 * Puts the calls of each key beside each other; otherwise they stay in the order of the stream. So Postgres finds the place in the
 * index by key still in the processor's cache. With 2 000 keys this took 0.3 to 1.3 µs of Postgres off an event, the more the busier
 * the machine was. In the order of their ids, across all pages of a batch, calls took 1.8 µs more: fewer steps in the index by id, but
 * each into another part of the index by key.
 */
function byKey(events) {
    const keys = new Map();
    for (const event of events) {
        const ofKey = keys.get(event.keyId);
        if (ofKey === undefined)
            keys.set(event.keyId, [event]);
        else
            ofKey.push(event);
    }
    return Array.from(keys.values()).flat();
}
/** @returns null when no entry was read, or all of them are of a newer version */
function newPage(read, feeBasisPoints) {
    const hasGaps = read.some(({ isNewer }) => isNewer);
    const entries = hasGaps ? read.filter(({ isNewer }) => !isNewer) : read;
    if (entries.length === 0)
        return null;
    const last = entries[entries.length - 1];
    const events = [];
    const rejected = [];
    for (const entry of entries) {
        if (entry.event === null)
            rejected.push(entry);
        else
            events.push(entry.event);
    }
    return {
        shard: last.shard,
        ids: entries.map(({ id }) => id),
        lastFields: last.fields,
        calls: events.length,
        rows: new CallRows(byKey(events), feeBasisPoints),
        ...new CallSums(events, feeBasisPoints).page(),
        rejected,
        hasGaps,
    };
}
function newBatch(pages, behind, readTo) {
    const shards = Array.from(new Set(pages.map(({ shard }) => shard))).sort((a, b) => a - b);
    return { pages, shards, size: sizeOf(pages), behind, readTo };
}
const sizeOf = (pages) => pages.reduce((sum, { ids }) => sum + ids.length, 0);
/** Some shards of a cluster cannot be used now: their node is away, refuses writes, or has a part of them only. */
export class ShardsAway extends Error {
    shards;
    constructor(shards, reason) {
        super(reason instanceof Error ? reason.message : String(reason));
        this.shards = shards;
    }
}
/**
 * Whether any stream of `shards` has an entry after the events of a newer version that were skipped. An idle writer asks this
 * with a single command.
 */
export async function isAnyWaiting({ redis, keys, readOver }, shards) {
    if (shards.length === 0)
        return false;
    const looks = Array.from(byStore(redis, shards), ([store, its]) => isOneWaiting({ store, keys, readOver }, its));
    return anyTrue(await Promise.allSettled(looks));
}
/** @throws the first failure when no Redis answered */
function anyTrue(results) {
    if (results.some((result) => result.status === 'fulfilled' && result.value))
        return true;
    const failed = results.find((result) => result.status === 'rejected');
    if (failed !== undefined && results.every(({ status }) => status === 'rejected'))
        throw failed.reason;
    return false;
}
async function isOneWaiting({ store, keys, readOver }, shards) {
    const streams = shards.map((shard) => keys.usage[shard]);
    const ids = shards.map((shard) => readOver.head(shard).id ?? '0');
    try {
        return (await store.command('xread', ['COUNT', '1', 'STREAMS', ...streams, ...ids])) !== null;
    }
    catch (error) {
        // One of the keys is no stream, so the whole XREAD fails. Answer yes: `readBatch` then reads them one by one and leaves out only the damaged one.
        if (isWrongType(error))
            return true;
        throw error;
    }
}
/**
 * Reads the next entries of the streams of `shards`, at most `size`. It asks for entries with one command at a time: Redis
 * executes everything that a client has sent before it turns to other clients, and calls would wait 10 ms. At half load with
 * 5 000 events per batch, the calls' p99 was 14.1 ms when all streams were read at once, and 10.5 this way.
 *
 * @param after a batch whose entries are still in the streams: read the entries after it; null: read from the oldest
 */
export async function readBatch(source, shards, size, after) {
    const lengths = await lengthsOf(source, shards);
    const from = shards.map((shard, i) => after?.readTo.get(shard) ?? source.readOver.head(shard, lengths[i]));
    const unread = shards.map((shard, i) => {
        const inBatch = sizeOf(after?.pages.filter((page) => page.shard === shard) ?? []);
        return Math.max(0, lengths[i] - inBatch - from[i].newer);
    });
    const counts = shares(unread, size);
    const pages = [];
    const readTo = new Map();
    let behind = unread.reduce((sum, length) => sum + length, 0);
    for (const [i, shard] of shards.entries()) {
        const start = from[i];
        const read = await readPages(source, shard, start, counts[i]);
        pages.push(...read.pages);
        readTo.set(shard, read.to);
        behind -= sizeOf(read.pages) + read.to.newer - start.newer;
        if (after?.readTo.has(shard))
            continue;
        source.readOver.remember(shard, read.head);
        source.onNewer?.(shard, read.to.newer);
    }
    return newBatch(pages, behind, readTo);
}
/**
 * The lengths of the streams. In a cluster a shard whose node does not answer counts as empty, so that the others are stored all
 * the same.
 *
 * @throws the first failure when no Redis answers
 */
async function lengthsOf(source, shards) {
    const results = await Promise.allSettled(shards.map((shard) => lengthOf(source, shard)));
    const failures = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []));
    if (failures.length > 0 && (!source.redis.isCluster || failures.length === shards.length))
        throw failures[0];
    return results.map((result, at) => {
        if (result.status === 'fulfilled')
            return result.value;
        source.onAway?.(shards[at]);
        return 0;
    });
}
async function lengthOf({ redis, keys, onLook }, shard) {
    try {
        const length = (await redis.command('xlen', [keys.usage[shard]]));
        onLook?.(shard, false);
        return length;
    }
    catch (error) {
        if (!isWrongType(error))
            throw error;
        onLook?.(shard, true);
        return 0;
    }
}
/** @returns the pages; `to`: how far the stream was read; `head`: the last position before the first page */
async function readPages(source, shard, from, count) {
    const pages = [];
    let to = from;
    let head = from;
    for (let left = count; left > 0 && to.newer - from.newer <= MAX_READ_OVER;) {
        const asked = to.newer > from.newer ? PAGE : Math.min(left, PAGE);
        const entries = await readEntries(source, shard, to.id, asked);
        const page = newPage(entries, source.feeBasisPoints);
        if (page !== null)
            pages.push(page);
        const taken = page?.ids.length ?? 0;
        left -= taken;
        to = { id: entries.at(-1)?.id ?? to.id, newer: to.newer + entries.length - taken };
        if (pages.length === 0)
            head = to;
        if (entries.length < asked)
            break;
    }
    return { pages, to, head };
}
/** @param after id of an entry: read the entries after it; null: read from the oldest */
export async function readEntries({ redis, keys }, shard, after, count) {
    const from = after === null ? '-' : `(${after}`;
    const args = [keys.usage[shard], from, '+', 'COUNT', String(count)];
    const entries = (await redis.command('xrange', args));
    return entries.map(([id, fields]) => decode(shard, id, fields));
}
/** The part of a batch that belongs to `shards`. The entries left out count as not read: they are added to `behind`. */
export function ofShards(batch, shards) {
    if (batch.shards.every((shard) => shards.has(shard)))
        return batch;
    const pages = batch.pages.filter(({ shard }) => shards.has(shard));
    // The streams left out will be read again from their heads.
    const readTo = new Map(Array.from(batch.readTo).filter(([shard]) => shards.has(shard)));
    return newBatch(pages, batch.behind + batch.size - sizeOf(pages), readTo);
}
/**
 * Whether the batch is still in the streams as it was read. Entries disappear only when this writer deletes them, or when Redis
 * loses its data: either all of it, or its last moments before a crash. So if the youngest entry of each stream is there, the
 * older ones are too. It also means that nobody has flushed Redis since the read: the installation that owns Redis now owned it
 * when the entries were read.
 *
 * @throws ForeignRedis when Redis belongs to another installation
 */
export async function isStillThere(source, batch) {
    const youngest = new Map(batch.pages.map((page) => [page.shard, page]));
    const stores = Array.from(byStore(source.redis, batch.shards));
    const results = await Promise.allSettled(stores.map(async ([store, shards]) => {
        const looks = shards.map((shard) => isPageThere(source, youngest.get(shard)));
        const [found] = await Promise.all([Promise.all(looks), store.confirmOwner()]);
        return !found.includes(false);
    }));
    const failed = results.flatMap((result, at) => (result.status === 'rejected' ? (stores[at]?.[1] ?? []) : []));
    const reason = results.find((result) => result.status === 'rejected')?.reason;
    if (failed.length > 0)
        throw source.redis.isCluster ? new ShardsAway(failed, reason) : reason;
    return results.every((result) => result.status === 'fulfilled' && result.value);
}
async function isPageThere({ redis, keys }, { shard, ids, lastFields }) {
    const id = ids[ids.length - 1];
    const [entry] = (await redis.command('xrange', [keys.usage[shard], id, id]));
    return entry?.[1].join('\t') === lastFields.join('\t');
}
/** Reads the entries of a batch from the streams again, because its pages do not keep the decoded events (see `Page`). */
export async function readAgain({ redis, keys }, batch) {
    const entries = batch.pages.map(async ({ shard, ids }) => {
        const args = [keys.usage[shard], ids[0], ids[ids.length - 1]];
        const found = (await redis.command('xrange', args));
        return found.map(([id, fields]) => decode(shard, id, fields)).filter(({ isNewer }) => !isNewer);
    });
    return (await Promise.all(entries)).flat();
}
/**
 * Deletes exactly the entries of this batch: a whole page at once if its entries are the oldest of the stream, otherwise by their
 * ids. It sends one command at a time, as `readBatch` does. If a page is no longer in the stream as it was read, nothing of it is
 * deleted: what is left of it is read again, and the calls in it that are stored already change nothing then.
 */
export async function deleteBatch(source, batch) {
    const failed = new Map();
    for (const page of batch.pages) {
        if (failed.has(page.shard))
            continue;
        try {
            await deletePage(source, page);
        }
        catch (error) {
            if (!source.redis.isCluster)
                throw error;
            failed.set(page.shard, error);
        }
    }
    const [first] = failed.values();
    if (failed.size > 0)
        throw new ShardsAway(Array.from(failed.keys()), first);
}
async function deletePage(source, page) {
    const { redis, keys } = source;
    const { shard, ids, lastFields } = page;
    const usage = keys.usage[shard];
    const last = ids[ids.length - 1];
    const args = [usage, ids[0], last, lastFields.join('\t')];
    if (!page.hasGaps && (await redis.script(deleteStoredScript, 1, args)) === 1)
        return;
    if (await isPageThere(source, page))
        await redis.script(deleteEntriesScript, 1, [usage, ...ids]);
}
/**
 * Splits a batch among streams. Short streams are read whole, so that a busy account does not delay the others; the long ones
 * share the rest evenly.
 *
 * @returns how many entries to read from each stream; their sum is at most `total`
 */
export function shares(lengths, total) {
    const counts = lengths.map(() => 0);
    const order = lengths.map((_, i) => i).sort((a, b) => lengths[a] - lengths[b]);
    let left = total;
    order.forEach((stream, position) => {
        const fair = Math.floor(left / (order.length - position));
        const count = Math.min(lengths[stream], fair);
        counts[stream] = count;
        left -= count;
    });
    return counts;
}
//# sourceMappingURL=stream.js.map