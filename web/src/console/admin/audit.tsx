import { dataOf, type Schemas } from '../../api/client.ts';
import { Empty } from '../../design/index.ts';
import { api } from '../../session.ts';
import { Id, shortId, When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { Changes } from './parts.tsx';

type Act = Schemas['Act'];

/** `/console/audit`: who did what. */
export default function Audit() {
  return (
    <>
      <PageHead
        title="Audit"
        lead="What operators did. A debit shows when it was asked for, whether or not the wallet had the money."
      />
      <ListPage
        caption="Actions of operators"
        filters={[
          { name: 'subject', label: 'Done to (id)' },
          { name: 'actor', label: 'Done by (id)' },
          { name: 'action', label: 'Action', placeholder: 'account.suspend' },
          ...RANGE_FILTERS,
        ]}
        ask={async (query, signal) => {
          const page = await dataOf(
            api.value.GET('/api/v1/admin/audit', { params: { query: { ...query, limit: 50 } }, signal }),
          );
          return { rows: page.acts, next: page.next_cursor };
        }}
        keyOf={(act) => String(act.id)}
        columns={[
          {
            title: 'When',
            cell: (act) => (
              <>
                <When at={act.at} />
                {act.request_id !== null && (
                  <span class="below" title={act.request_id}>
                    request {shortId(act.request_id)}
                  </span>
                )}
              </>
            ),
          },
          { title: 'Action', cell: (act) => <code>{act.action}</code> },
          { title: 'Done to', cell: (act) => <Subject act={act} /> },
          { title: 'By', cell: (act) => <Id id={act.actor} href={`/console/audit?actor=${act.actor}`} /> },
          { title: 'What changed', cell: (act) => <Changes before={act.before} after={act.after} /> },
        ]}
        empty={<Empty title="Nothing yet">What operators do shows here: credits, suspensions, changed limits.</Empty>}
      />
    </>
  );
}

function Subject({ act }: { readonly act: Act }) {
  const type = <span class="soft">{act.subject_type}</span>;
  if (act.subject_type === 'reconciliation') return type;
  const href =
    act.subject_type === 'account' ? `/console/accounts/${act.subject_id}` : `/console/audit?subject=${act.subject_id}`;
  return (
    <span class="when">
      {type} <Id id={act.subject_id} href={href} />
    </span>
  );
}
