import type { ComponentChildren } from 'preact';
import { useEffect } from 'preact/hooks';
import { useArrival } from '../../arrival.ts';
import { session } from '../../session.ts';

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
  const arrival = useArrival(session.value?.me.key_id);
  useEffect(() => {
    document.title = `${title} · Tollgate`;
  }, [title]);
  return (
    <div class="page-head">
      <div>
        <h1 {...arrival}>{title}</h1>
        {lead !== undefined && <p class="soft">{lead}</p>}
      </div>
      {actions !== undefined && <div class="row">{actions}</div>}
    </div>
  );
}
