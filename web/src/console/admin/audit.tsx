import { dataOf, type Schemas } from '../../api/client.ts';
import { Empty } from '../../design/index.ts';
import { api } from '../../session.ts';
import { State, When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { Id, shortId } from '../shared/ids.tsx';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { ACT_WORDS } from './act-words.ts';
import { listFile } from './list-file.ts';
import { withIds } from './name-or-id.ts';
import { AccountLink, Changes } from './parts.tsx';

type Act = Schemas['Act'];

/** `/console/audit`: who did what. */
export default function Audit() {
  return (
    <>
      <PageHead
        title="Audit"
        lead="What was done in the operator's name. A debit shows twice: when it was asked for, and how it ended."
      />
      <ListPage
        caption="Acts"
        file={listFile('audit')}
        filters={[
          { name: 'subject', label: 'Done to', placeholder: 'Label or id' },
          { name: 'actor', label: 'Done by', placeholder: 'Label or key' },
          { name: 'action', label: 'Action', options: [['', 'Any'], ...Object.entries(ACT_WORDS)] },
          {
            name: 'outcome',
            label: 'Outcome',
            options: [
              ['', 'Any'],
              ['begun', 'Begun'],
              ['done', 'Done'],
              ['refused', 'Refused'],
            ],
          },
          ...RANGE_FILTERS,
        ]}
        ask={async (query, signal) => {
          const asked = { ...(await withIds(query, signal)), limit: 50 };
          const page = await dataOf(api.value.GET('/api/v1/admin/audit', { params: { query: asked }, signal }));
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
          { title: 'Action', cell: (act) => <Action act={act} /> },
          { title: 'Done to', cell: (act) => <Subject act={act} /> },
          { title: 'By', cell: (act) => <Actor act={act} /> },
          { title: 'What changed', wide: true, cell: (act) => <Changed act={act} /> },
        ]}
        empty={<Empty title="Nothing yet">Acts such as credits and suspensions show here.</Empty>}
      />
    </>
  );
}

export const Changed = ({ act }: { readonly act: Act }) => (
  <Changes
    before={act.before}
    after={act.after}
    labels={
      new Map([
        [act.actor_account_id ?? '', act.actor_owner_id],
        [String(act.after?.account_id ?? act.before?.account_id ?? act.subject_id), act.subject_owner_id],
      ])
    }
  />
);

/** What was done. An act that was only begun, or was refused, has a badge. */
export const Action = ({ act }: { readonly act: Act }) => (
  <>
    <span title={act.action}>{ACT_WORDS[act.action] ?? act.action}</span>
    {act.outcome !== 'done' && (
      <span class="below">
        <State value={act.outcome} />
      </span>
    )}
  </>
);

/** The key and its account; or `create-admin` or `system` if no key acted. */
export function Actor({ act }: { readonly act: Act }) {
  const key = <Id id={act.actor} href={`/console/audit?actor=${act.actor}`} />;
  if (act.actor_account_id === null) return key;
  return (
    <>
      <AccountLink id={act.actor_account_id} label={act.actor_owner_id} />
      <span class="below">key {key}</span>
    </>
  );
}

function Subject({ act }: { readonly act: Act }) {
  const type = <span class="soft">{act.subject_type}</span>;
  if (act.subject_type === 'reconciliation') return type;
  if (act.subject_type === 'account') {
    return (
      <>
        <AccountLink id={act.subject_id} label={act.subject_owner_id} />
        <span class="below">account {shortId(act.subject_id)}</span>
      </>
    );
  }
  if (act.subject_name !== null) {
    return (
      <>
        <a href={`/console/audit?subject=${act.subject_id}`} class="label" title={act.subject_id}>
          {act.subject_name}
        </a>
        <span class="below">service {shortId(act.subject_id)}</span>
      </>
    );
  }
  const isCall = act.subject_type === 'call';
  const href = isCall ? `/console/calls/${act.subject_id}` : `/console/audit?subject=${act.subject_id}`;
  return (
    <span class="nowrap">
      {type} <Id id={act.subject_id} href={href} />
    </span>
  );
}
