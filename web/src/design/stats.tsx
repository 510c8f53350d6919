import type { ComponentChildren } from 'preact';

/** How many characters fit in large type where figures stand beside one another. Longer ones are smaller, so that none is broken. */
const FITS = 11;

/** A row of figures that belong together. @param hasTimes  some are times in words, so all are in smaller type */
export const Stats = ({ hasTimes, children }: { readonly hasTimes?: true; readonly children: ComponentChildren }) => (
  <dl class={hasTimes ? 'stats stats-long' : 'stats'}>{children}</dl>
);

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
