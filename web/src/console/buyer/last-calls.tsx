import { Table } from '../../design/more.ts';
import { ago, moment } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { OutcomeBadge } from '../shared/cells.tsx';
import type { Call } from './usage.ts';

/** The newest calls in few columns. */
export function LastCalls({ calls }: { readonly calls: readonly Call[] }) {
  const { language } = useI18n();
  const now = Date.now();
  return (
    <Table
      caption="Last calls"
      rows={calls}
      keyOf={({ usage_id }) => usage_id}
      columns={[
        {
          title: 'When',
          cell: ({ usage_id, created_at }) => (
            <a class="nowrap" href={`/console/calls/${usage_id}`} title={moment(created_at, language)}>
              {ago(created_at, language, now)}
            </a>
          ),
        },
        {
          title: 'Service',
          wide: true,
          bare: true,
          cell: ({ service_name }) => <span class="name">{service_name}</span>,
        },
        { title: 'Outcome', bare: true, cell: (call) => <OutcomeBadge call={call} brief /> },
        { title: 'Cost', amount: ({ amount }) => amount },
      ]}
    />
  );
}
