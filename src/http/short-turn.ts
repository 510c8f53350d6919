/** A turn of the event loop below this counts as short. */
const SHORT_MS = 0.3;
/** Maximum wait for a short turn; after that the listen socket is closed without one. */
const MAX_WAIT_MS = 250;

/**
 * Resolves at the end of a short turn of the event loop, right after its poll for events. Closing a listen socket resets
 * the connections that the addon has not accepted yet. The addon accepts in the poll, so hardly any are waiting after a short
 * turn. Under load most turns take 5 to 10 ms, but some remain short.
 */
export async function shortTurn(): Promise<void> {
  const deadline = performance.now() + MAX_WAIT_MS;
  for (;;) {
    const startedAt = performance.now();
    await new Promise(setImmediate);
    const now = performance.now();
    if (now - startedAt < SHORT_MS || now > deadline) return;
  }
}
