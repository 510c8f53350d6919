/** A turn of the event loop that takes less than this counts as short. */
const SHORT_MS = 0.3;
/** Maximum wait for a short turn; then shortTurn() resolves without one. */
const MAX_WAIT_MS = 250;
/**
 * Resolves at the end of a short turn of the event loop, right after its poll for events: a good moment to close a listen socket.
 * Closing it resets the connections that the addon has not accepted yet. The addon accepts in the poll, so after a short turn
 * hardly any are waiting. Under load most turns take 5 to 10 ms, but some remain short.
 */
export async function shortTurn() {
    const deadline = performance.now() + MAX_WAIT_MS;
    for (;;) {
        const startedAt = performance.now();
        await new Promise(setImmediate);
        const now = performance.now();
        if (now - startedAt < SHORT_MS || now > deadline)
            return;
    }
}
//# sourceMappingURL=short-turn.js.map