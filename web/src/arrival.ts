import { useEffect, useRef } from 'preact/hooks';
import { useAddress } from './address.tsx';

/** The address at which the visitor arrived last. */
let arrived: string | null = null;
const FIELDS = 'input, select, textarea, [contenteditable], dialog *';

/**
 * For the main heading of a page: it gets the focus when a visitor arrives, so that a screen reader reads it and the next Tab is
 * within the page. On the first page of a tab the focus stays where the browser puts it. @param who another person at the same
 * address arrives again
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
    // A visitor who is already typing keeps the focus. The router scrolls.
    if (before === null || before === here || document.activeElement?.matches(FIELDS)) return;
    ref.current?.focus({ preventScroll: true });
  }, [here]);
  return { ref, tabIndex: -1 };
}
