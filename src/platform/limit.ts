/** @returns a function that runs work, at most `most` at a time; the rest waits in order of arrival */
export function limit(most: number): <T>(work: () => Promise<T>) => Promise<T> {
  let running = 0;
  const waiting: (() => void)[] = [];
  return async (work) => {
    if (running >= most) await new Promise<void>((resolve) => waiting.push(resolve));
    else running++;
    try {
      return await work();
    } finally {
      // The longest waiting work begins.
      const next = waiting.shift();
      if (next === undefined) running--;
      else next();
    }
  };
}
