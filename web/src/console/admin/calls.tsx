import { dataOf } from '../../api/client.ts';
import { Button, Empty, TextInput } from '../../design/index.ts';
import { duration } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { usePlace } from '../../place.tsx';
import { api } from '../../session.ts';
import { OutcomeBadge, When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { CallPage } from './call.tsx';
import { AccountLink } from './parts.tsx';

/** `/console/calls` of an admin, and `/console/calls/{usage_id}`. */
export default function Calls() {
  const [, id = ''] = /^\/console\/calls\/([^/]+)\/?$/.exec(usePlace().path) ?? [];
  return id === '' ? <CallList /> : <CallPage key={id} id={id} />;
}

function CallList() {
  const { language } = useI18n();
  return (
    <>
      <PageHead
        title="Calls"
        lead="Of the last 24 hours, unless you choose the days: at most 31."
        actions={<FindCall />}
      />
      <ListPage
        caption="Calls"
        filters={[
          { name: 'account_id', label: 'Buyer (account)' },
          { name: 'provider_id', label: 'Provider (account)' },
          { name: 'service_id', label: 'Service' },
          { name: 'key_id', label: 'Key' },
          {
            name: 'outcome',
            label: 'Outcome',
            options: [
              ['', 'Any'],
              ['completed', 'Completed'],
              ['refunded', 'Refunded'],
              ['abandoned', 'Abandoned'],
            ],
          },
          ...RANGE_FILTERS,
        ]}
        ask={async (query, signal) => {
          const page = await dataOf(
            api.value.GET('/api/v1/admin/calls', { params: { query: { ...query, limit: 50 } }, signal }),
          );
          return { rows: page.calls, next: page.next_cursor };
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
          { title: 'Service', cell: (row) => <span class="name">{row.service_name}</span> },
          { title: 'Outcome', cell: (row) => <OutcomeBadge call={row} side="others" /> },
          { title: 'Status', right: true, cell: (row) => (row.status === 0 ? '–' : row.status) },
          { title: 'Latency', right: true, cell: (row) => duration(row.latency_ms, language) },
          { title: 'Price', amount: (row) => row.amount, cell: (row, text) => (row.free_tier ? 'Free' : text) },
          { title: 'Buyer', cell: (row) => <AccountLink id={row.account_id} /> },
          { title: 'Provider', cell: (row) => <AccountLink id={row.provider_id} /> },
        ]}
        empty={<Empty title="No calls in the last 24 hours">Choose earlier days to see older ones.</Empty>}
      />
    </>
  );
}

/** Whoever complains names the call by its `X-ACF-Usage-Id`. */
function FindCall() {
  const place = usePlace();
  const submit = (form: HTMLFormElement): void => {
    const id = String(new FormData(form).get('usage_id') ?? '').trim();
    if (id !== '') place.go(`/console/calls/${encodeURIComponent(id)}`);
  };
  return (
    <form
      class="find"
      onSubmit={(event) => {
        event.preventDefault();
        submit(event.currentTarget);
      }}
    >
      <TextInput label="Usage id" name="usage_id" placeholder="X-ACF-Usage-Id" autocomplete="off" spellcheck={false} />
      <Button type="submit">Find</Button>
    </form>
  );
}
