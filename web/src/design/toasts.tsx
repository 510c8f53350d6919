import { signal } from '@preact/signals';

const shown = signal<readonly { readonly id: number; readonly text: string }[]>([]);
let last = 0;

/** Says in passing that something was done. What went wrong belongs beside what failed, where it stays. */
export function say(text: string): void {
  const id = ++last;
  shown.value = [...shown.value, { id, text }];
  setTimeout(() => {
    shown.value = shown.value.filter((toast) => toast.id !== id);
  }, 5_000);
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {shown.value.map(({ id, text }) => (
        <div key={id} class="toast">
          {text}
        </div>
      ))}
    </div>
  );
}
