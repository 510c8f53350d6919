/**
 * The two questions that decide what a history of faults has done to a shard (docs/decisions: 'The wallet follows Postgres').
 *
 * Does Postgres have everything that was ever trimmed from this shard? If it lacks a flush that Redis was trimmed after, Postgres is
 * older, and nothing may be done that relies on it. Could Redis have changed since the last look? That is *doubt*.
 *
 * Pure functions: the writer, the loading of wallets and the comparison hand them what they have read.
 */
/**
 * A mark that is missing, or older than one that was seen, is no sign of a change: only FLUSHALL does that to a Redis which keeps its ids,
 * and what FLUSHALL leaves is loaded again exactly. A Redis that comes back older, or follows another, has other ids.
 *
 * @param history read after `seen`, in a snapshot begun after it: a flush that was trimmed by then is in it
 * @param isInJournal whether the journal has a flush with exactly this mark; of no mark: true
 */
export function judge(seen, history, isInJournal) {
    if (seen.mark !== null && !isInJournal)
        return 'postgres is older';
    return seen.dataId === history.dataId ? 'as known' : 'redis may have changed';
}
/** What a look that found `redis may have changed` stores, so that the next look at the same Redis finds it as known. */
export function withDoubt(history, { dataId }) {
    return { ...history, dataId, doubt: history.doubt + 1 };
}
export function isInDoubt({ doubt, verified }) {
    return doubt > verified;
}
/** What a clean comparison stores. @param began the `doubt` with which it began: a later one is not verified by it */
export function verifiedBy(history, began) {
    return { ...history, verified: Math.max(history.verified, began) };
}
//# sourceMappingURL=judge.js.map