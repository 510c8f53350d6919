import { useEffect } from 'preact/hooks';

/** Asks again every so often while somebody can see the page. */
export function useEvery(ms: number, ask: () => void): void {
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) ask();
    }, ms);
    return () => clearInterval(timer);
  }, [ms, ask]);
}
