import { useEffect, useRef } from 'preact/hooks';

/**
 * For a list that is wider than a phone and scrolls sideways: the chosen entry is brought into view. Only the list scrolls, not the
 * page.
 */
export function useChosenInView<E extends HTMLElement>(chosen: unknown): { readonly current: E | null } {
  const list = useRef<E>(null);
  useEffect(() => {
    const element = list.current;
    const entry = element?.querySelector<HTMLElement>('[aria-current], [aria-selected=true]');
    if (element === null || !entry) return;
    const { left } = entry.getBoundingClientRect();
    element.scrollLeft += left - element.getBoundingClientRect().left - element.clientWidth / 3;
  }, [chosen]);
  return list;
}
