import type { ComponentChildren } from 'preact';

/** As many characters fit in large type where figures stand beside one another. Longer values are smaller, so that none is broken. */
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
        {typeof value === 'string' && value.length > FITS ? <span class="stat-long">{value}</span> : value}
      </dd>
      {hint !== undefined && <dd class="stat-hint">{hint}</dd>}
    </div>
  );
}
