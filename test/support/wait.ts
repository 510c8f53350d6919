/**
 * Calls `probe` until it returns something other than null, undefined or false, and returns that. Throws after `timeoutMs`. The longer it
 * has waited, the less often it asks, down to every 50 ms: what asks 100 times a second takes CPU from the tests beside it.
 */
export async function until<T>(
  probe: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = 60_000,
): Promise<T> {
  const startedAt = performance.now();
  for (;;) {
    const value = await probe();
    if (value !== null && value !== undefined && value !== false) return value;
    const waitedMs = performance.now() - startedAt;
    if (waitedMs > timeoutMs)
      throw new Error(`still not true after ${timeoutMs} ms: ${probe.toString().slice(0, 200)}`);
    await new Promise((resolve) => setTimeout(resolve, Math.min(50, 10 + waitedMs / 10)));
  }
}
