import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

const shown = signal<readonly { readonly id: number; readonly text: string }[]>([]);
/** Counts changes of the element that is on top of the page. */
const raised = signal(0);
let last = 0;

/** Briefly says that something was done. Errors belong beside the element that failed, where they stay. */
export function say(text: string): void {
  const id = ++last;
  shown.value = [...shown.value, { id, text }];
  setTimeout(() => {
    shown.value = shown.value.filter((toast) => toast.id !== id);
  }, 5_000);
}

/** A dialog has opened: the present message must be shown above it. */
export function raiseToasts(): void {
  raised.value++;
}

/** Removes all messages. */
export function clearToasts(): void {
  shown.value = [];
}

export function Toasts() {
  const popover = useRef<HTMLDivElement>(null);
  const isEmpty = shown.value.length === 0;
  const round = raised.value;
  // The element shown last is on top.
  useEffect(() => {
    const element = popover.current;
    // Older browsers have no popovers: there it is part of the page.
    if (typeof element?.showPopover !== 'function') return;
    if (element.matches(':popover-open')) element.hidePopover();
    if (!isEmpty) element.showPopover();
  }, [shown.value, round]);
  return (
    <div role="status" aria-live="polite">
      <div ref={popover} popover="manual" class="toasts">
        {shown.value.map(({ id, text }) => (
          <div key={id} class="toast">
            {text}
          </div>
        ))}
      </div>
    </div>
  );
}
