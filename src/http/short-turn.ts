const SHORT_MS = 0.3;
const MAX_WAIT_MS = 250;

/**
 * Resolves at the end of a short turn of the event loop, right after its poll for events. Closing a listen socket resets
 * the connections that the addon has not accepted; it accepts in the poll, so after a short turn there are next to none.
 * Under load turns take 5 to 10 ms, but not all of them.
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
