const TICK_MS = 20;

/**
 * Milliseconds that `work` took, without the time that this process waited for a processor: a busy machine does not make a gateway slow.
 * The process's own computing counts.
 */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now();
  let waitedMs = 0;
  let [lastTick, lastCpu] = [began, process.cpuUsage()];
  const tick = (): void => {
    const now = performance.now();
    const { user, system } = process.cpuUsage(lastCpu);
    waitedMs += Math.max(0, now - lastTick - TICK_MS - (user + system) / 1_000);
    [lastTick, lastCpu] = [now, process.cpuUsage()];
  };
  const ticking = setInterval(tick, TICK_MS);
  try {
    await work();
  } finally {
    clearInterval(ticking);
  }
  tick();
  return performance.now() - began - waitedMs;
}
