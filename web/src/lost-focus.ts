const FOCUSABLE = ':is(a[href], button, input, select, textarea, summary, [tabindex]):not(:disabled)';

/** Acts, and what is spent by one. A key that is pressed twice must not do what nobody has chosen. */
export const ACTS = '[type="submit"], .button-primary, .button-danger';

/** What has the focus, or had it when it was removed or disabled. */
let last: Element | null = null;
/** What a Tab passes before it, nearest first. */
let before: readonly HTMLElement[] = [];

const isThere = (one: Element): boolean => one.isConnected && !one.matches(':disabled');

/** A held Enter presses once: it would go on to press what its first press has brought, or call again at each answer. */
export function pressOnce(): void {
  addEventListener(
    'keydown',
    (event) => {
      if (event.key === 'Enter' && event.repeat && !(event.target as Element).matches('textarea'))
        event.preventDefault();
    },
    true,
  );
}

/**
 * A button may vanish, or be disabled, because it was pressed. The browser would then leave the focus to nobody, and throw a screen reader to the top
 * of the page. This puts it on what comes before, so that a Tab goes on from there.
 */
export function keepFocus(): void {
  const page = document.body;
  addEventListener('focusin', ({ target }) => {
    last = target as Element;
    const all = [...page.querySelectorAll<HTMLElement>(FOCUSABLE)];
    before = all.slice(0, Math.max(0, all.indexOf(target as HTMLElement))).reverse();
  });
  // Somebody who clicks beside everything has left it. A browser may say so of what is removed or disabled, too.
  addEventListener('focusout', ({ target }) => {
    queueMicrotask(() => {
      if (last === target && isThere(last as Element) && document.activeElement !== target) last = null;
    });
  });
  new MutationObserver(() => {
    if (last === null || isThere(last)) return;
    const lost = last as HTMLElement;
    // A page that puts the focus somewhere does so after the next frame.
    requestAnimationFrame(() =>
      setTimeout(() => {
        if (last !== lost || document.activeElement !== page) return;
        [lost, ...before.filter((one) => !one.matches(ACTS))].some((one) => {
          if (isThere(one)) one.focus({ preventScroll: true });
          const isFocused = document.activeElement === one;
          // For those who press keys, what has the focus is in view, and not below the head of the page.
          if (isFocused && one.matches(':focus-visible')) one.scrollIntoView({ block: 'nearest' });
          return isFocused;
        });
      }, 50),
    );
  }).observe(page, { childList: true, subtree: true, attributeFilter: ['disabled'] });
}
