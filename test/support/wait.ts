/** Calls `probe` until it returns something other than null, undefined or false, and returns that. Throws after `timeoutMs`. */
export async function until<T>(
  probe: () => Promise<T | null | undefined | false> | T | null | undefined | false,
  timeoutMs = 60_000,
): Promise<T> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    const value = await probe();
    if (value !== null && value !== undefined && value !== false) return value;
    if (performance.now() > deadline)
      throw new Error(`still not true after ${timeoutMs} ms: ${probe.toString().slice(0, 200)}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
