import type { ComponentChildren } from 'preact';

/** As many characters fit in large type where figures stand beside one another. With a longer one all are smaller, so that none is broken. */
const FITS = 11;

/** A row of figures that belong together. */
export const Stats = ({ children }: { readonly children: ComponentChildren }) => <dl class="stats">{children}</dl>;

export function Stat({
  label,
  value,
  hint,
}: {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly hint?: ComponentChildren;
}) {
  return (
    <div class="stat">
      <dt class="stat-label">{label}</dt>
      <dd class="stat-value">
        <span class={typeof value === 'string' && value.length > FITS ? 'stat-long' : undefined}>{value}</span>
      </dd>
      {hint !== undefined && <dd class="stat-hint">{hint}</dd>}
    </div>
  );
}
