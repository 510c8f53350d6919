/** Resolves when `work` is over, however it ended, or after `timeoutMs`: for stopping, where nothing may wait for ever. */
export async function overWithin(work: Promise<unknown>, timeoutMs: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, timeoutMs);
  });
  await Promise.race([Promise.allSettled([work]), deadline]);
  clearTimeout(timer);
}
