import type { ComponentChildren } from 'preact';

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
      <dd class="stat-value">{value}</dd>
      {hint !== undefined && <dd class="stat-hint">{hint}</dd>}
    </div>
  );
}
