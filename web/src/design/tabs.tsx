import type { ComponentChildren } from 'preact';
import { useId } from 'preact/hooks';
import { useChosenInView } from './in-view.ts';

/** One of several views of the same thing. Arrow keys move between tabs, as in the ARIA pattern. */
export function Tabs({
  label,
  tabs,
  chosen,
  onChoose,
  children,
}: {
  readonly label: string;
  readonly tabs: readonly (readonly [id: string, text: string])[];
  readonly chosen: string;
  readonly onChoose: (id: string) => void;
  readonly children: ComponentChildren;
}) {
  const base = useId();
  const list = useChosenInView<HTMLDivElement>(chosen);
  const move = (event: KeyboardEvent): void => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (step === undefined) return;
    const at = tabs.findIndex(([id]) => id === chosen);
    const [next] = tabs[(at + step + tabs.length) % tabs.length] ?? [];
    if (next === undefined) return;
    event.preventDefault();
    onChoose(next);
    document.getElementById(`${base}-${next}`)?.focus();
  };
  return (
    <div class="stack">
      <div class="tabs" ref={list} role="tablist" aria-label={label} onKeyDown={move}>
        {tabs.map(([id, text]) => (
          <button
            key={id}
            id={`${base}-${id}`}
            type="button"
            role="tab"
            class="tab"
            aria-selected={id === chosen}
            aria-controls={`${base}-panel`}
            tabIndex={id === chosen ? 0 : -1}
            onClick={() => onChoose(id)}
          >
            {text}
          </button>
        ))}
      </div>
      <div role="tabpanel" id={`${base}-panel`} aria-labelledby={`${base}-${chosen}`}>
        {children}
      </div>
    </div>
  );
}
