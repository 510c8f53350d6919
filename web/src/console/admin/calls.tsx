import { useAddress } from '../../address.tsx';
import { dataOf } from '../../api/client.ts';
import { Empty } from '../../design/index.ts';
import { duration } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { api } from '../../session.ts';
import { AskedFor, OutcomeBadge, When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { CallPage } from './call.tsx';
import { Find } from './find.tsx';
import { listFile } from './list-file.ts';
import { withIds } from './name-or-id.ts';
import { AccountLink } from './parts.tsx';

/** `/console/calls` of an admin, and `/console/calls/{usage_id}`. */
export default function Calls() {
  const [, id = ''] = /^\/console\/calls\/([^/]+)\/?$/.exec(useAddress().path) ?? [];
  return id === '' ? <CallList /> : <CallPage key={id} id={id} />;
}

function CallList() {
  const { language } = useI18n();
  return (
    <>
      <PageHead title="Calls" lead="Of the last 24 hours, unless you choose days: at most 31." actions={<Find />} />
      <ListPage
        caption="Calls"
        file={listFile('calls')}
        filters={[
          { name: 'account_id', label: 'Buyer', placeholder: 'Label or id' },
          { name: 'provider_id', label: 'Provider', placeholder: 'Label or id' },
          { name: 'service_id', label: 'Service', placeholder: 'Name or id' },
          { name: 'key_id', label: 'Key', placeholder: 'acf_…' },
          {
            name: 'outcome',
            label: 'Outcome',
            options: [
              ['', 'Any'],
              ['completed', 'Charged or free'],
              ['refunded', 'Refunded'],
              ['abandoned', 'Refunded: gateway died'],
            ],
          },
          ...RANGE_FILTERS,
        ]}
        ask={async (query, signal) => {
          const asked = { ...(await withIds(query, signal)), limit: 50 };
          const page = await dataOf(api.value.GET('/api/v1/admin/calls', { params: { query: asked }, signal }));
          return { rows: page.calls, next: page.next_cursor, since: page.records_since };
        }}
        keyOf={(call) => call.usage_id}
        columns={[
          {
            title: 'When',
            cell: (row) => (
              <a href={`/console/calls/${row.usage_id}`}>
                <When at={row.created_at} />
              </a>
            ),
          },
          {
            title: 'Service',
            cell: (row) => (
              <>
                <span class="name">{row.service_name}</span>
                <span class="below">
                  by <AccountLink id={row.provider_id} label={row.provider_owner_id} />
                </span>
              </>
            ),
          },
          {
            title: 'Outcome',
            cell: (row) => (
              <span class="outcome">
                <OutcomeBadge call={row} side="others" />
                <AskedFor call={row} />
              </span>
            ),
          },
          { title: 'Status', right: true, cell: (row) => (row.status === 0 ? '–' : row.status) },
          { title: 'Latency', right: true, cell: (row) => duration(row.latency_ms, language) },
          { title: 'Charged', amount: (row) => row.amount, cell: (row, text) => (row.free_tier ? 'Free' : text) },
          { title: 'Buyer', cell: (row) => <AccountLink id={row.account_id} label={row.owner_id} /> },
        ]}
        empty={<Empty title="No calls in the last 24 hours">Choose earlier days to see older ones.</Empty>}
      />
    </>
  );
}
