import type { ComponentChildren } from 'preact';

/** @param flush  the content reaches the edges, as a table does */
export function Card({
  title,
  actions,
  flush = false,
  children,
}: {
  readonly title?: ComponentChildren;
  readonly actions?: ComponentChildren;
  readonly flush?: boolean;
  readonly children: ComponentChildren;
}) {
  return (
    <section class="card">
      {(title !== undefined || actions !== undefined) && (
        <div class="card-head">
          {title !== undefined && <h2>{title}</h2>}
          {actions !== undefined && <div class="row">{actions}</div>}
        </div>
      )}
      {flush ? children : <div class="card-body">{children}</div>}
    </section>
  );
}
