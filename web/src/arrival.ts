import { useEffect, useRef } from 'preact/hooks';
import { useAddress } from './address.tsx';

/** Where somebody arrived last. */
let arrived: string | null = null;
const FIELDS = 'input, select, textarea, [contenteditable], dialog *';

/**
 * For the main heading of a page: a visitor who arrives there has the focus on it, so that a screen reader says it and the next Tab is in
 * the page. The first page of a tab leaves the focus where the browser puts it.
 *
 * @param who  another person at the same address arrives again
 */
export function useArrival(who = ''): { readonly ref: { current: HTMLHeadingElement | null }; readonly tabIndex: -1 } {
  const { path } = useAddress();
  const ref = useRef<HTMLHeadingElement>(null);
  const here = `${who} ${path}`;
  useEffect(() => {
    const before = arrived;
    arrived = here;
    // A visitor who types already stays there. The router scrolls.
    if (before === null || before === here || document.activeElement?.matches(FIELDS)) return;
    ref.current?.focus({ preventScroll: true });
  }, [here]);
  return { ref, tabIndex: -1 };
}
