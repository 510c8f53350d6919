import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';

/** Title and actions of a page of the console. @param lead  one sentence: what the page is for */
export function PageHead({
  title,
  lead,
  actions,
}: {
  readonly title: string;
  readonly lead?: ComponentChildren;
  readonly actions?: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return (
    <div class="page-head">
      <div>
        <h1>{title}</h1>
        {lead !== undefined && <p class="soft">{lead}</p>}
      </div>
      {actions !== undefined && <div class="row">{actions}</div>}
    </div>
  );
}
