import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';

const shown = signal<readonly { readonly id: number; readonly text: string }[]>([]);
/** How often what is on top of the page has changed. */
const raised = signal(0);
let last = 0;

/** Says in passing that something was done. What went wrong belongs beside what failed, where it stays. */
export function say(text: string): void {
  const id = ++last;
  shown.value = [...shown.value, { id, text }];
  setTimeout(() => {
    shown.value = shown.value.filter((toast) => toast.id !== id);
  }, 5_000);
}

/** A dialog has opened: what is being said must stand above it. */
export function raiseToasts(): void {
  raised.value++;
}

/** Nothing of what was said stays behind. */
export function clearToasts(): void {
  shown.value = [];
}

export function Toasts() {
  const popover = useRef<HTMLDivElement>(null);
  const isEmpty = shown.value.length === 0;
  const round = raised.value;
  // What is shown last is on top.
  useEffect(() => {
    const element = popover.current;
    // An older browser has no popovers; there it stands in the page.
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
