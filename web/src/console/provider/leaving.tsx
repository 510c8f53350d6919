import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { onMove } from '../../address.tsx';
import { Button } from '../../design/index.ts';
import { Dialog } from '../../design/more.ts';
import { unsaved } from '../../unsaved.ts';

/**
 * Asks before a page with unsaved changes is left: by a link, by going back or forward, by a reload, or by closing the tab. In the
 * last two cases the browser itself asks.
 *
 * @param when  whether something is not saved
 */
export function AskBeforeLeaving({ when }: { readonly when: boolean }) {
  const [asking, setAsking] = useState<{ readonly leave: () => void } | null>(null);
  const isAllowed = useRef(false);
  useLayoutEffect(() => {
    if (!when) return;
    unsaved.value = true;
    const here = location.pathname + location.search;
    const ask = (leave: () => void): void => setAsking({ leave });
    // Registered before the router, which listens on the same window.
    const clicked = (event: MouseEvent): void => {
      const link = linkOf(event);
      if (isAllowed.current || link === null || link.pathname + link.search === here) return;
      event.preventDefault();
      event.stopPropagation();
      ask(() => (link.isConnected ? link.click() : location.assign(link.href)));
    };
    const moved = (event: PopStateEvent): void => {
      if (isAllowed.current || location.pathname + location.search === here) return;
      event.stopImmediatePropagation();
      // The browser is already there: it goes back to this page, and from here there again if the reader wants that.
      history.pushState(null, '', here);
      ask(() => history.back());
    };
    const closing = (event: BeforeUnloadEvent): void => {
      if (!isAllowed.current) event.preventDefault();
    };
    addEventListener('click', clicked, { capture: true });
    const ends = onMove(moved);
    addEventListener('beforeunload', closing);
    return () => {
      unsaved.value = false;
      removeEventListener('click', clicked, { capture: true });
      ends();
      removeEventListener('beforeunload', closing);
    };
  }, [when]);
  if (asking === null) return null;
  const stay = (): void => setAsking(null);
  return (
    <Dialog
      title="Leave without saving?"
      onClose={stay}
      actions={
        <>
          <Button onClick={stay}>Stay</Button>
          <Button
            kind="danger"
            onClick={() => {
              isAllowed.current = true;
              setAsking(null);
              asking.leave();
            }}
          >
            Leave
          </Button>
        </>
      }
    >
      <p>What you changed on this page is not saved yet.</p>
    </Dialog>
  );
}

/** The clicked link, if it opens in this tab and leads to a page of this site; else null. */
function linkOf(event: MouseEvent): HTMLAnchorElement | null {
  if (event.ctrlKey || event.metaKey || event.altKey || event.shiftKey || event.button !== 0) return null;
  const link = event
    .composedPath()
    .find((element): element is HTMLAnchorElement => element instanceof HTMLAnchorElement && element.href !== '');
  const isHere = link !== undefined && link.origin === location.origin && /^(_self)?$/.test(link.target);
  return isHere && !link.hasAttribute('download') ? link : null;
}
