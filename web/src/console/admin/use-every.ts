import { useEffect } from 'preact/hooks';

/** Asks again at intervals while the page is visible. */
export function useEvery(ms: number, ask: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) ask();
    }, ms);
    return () => clearInterval(timer);
  }, [ms, ask]);
}
