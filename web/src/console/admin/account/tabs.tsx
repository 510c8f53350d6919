import { dataOf } from '../../../api/client.ts';
import { Empty } from '../../../design/index.ts';
import { duration } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { useResource } from '../../../resource.ts';
import { api } from '../../../session.ts';
import { OutcomeBadge, QualityOf, Signed, State, When } from '../../shared/cells.tsx';
import { Action, Actor, Changed } from '../audit.tsx';
import { NEWEST, Short, type TabProps } from './short.tsx';

export { KeysOf } from './keys.tsx';

export function ServicesOf({ account }: TabProps) {
  const id = account.account_id;
  const list = useResource(`services of ${id}`, async (signal) => {
    const query = { provider_id: id, limit: NEWEST };
    return (await dataOf(api.value.GET('/api/v1/admin/services', { params: { query }, signal }))).services;
  });
  return (
    <Short
      caption="Services of the account"
      list={list}
      keyOf={(row) => row.id}
      columns={[
        { title: 'Service', cell: (row) => <span class="name">{row.name}</span> },
        { title: 'Status', cell: (row) => <State value={row.status} /> },
        { title: 'Category', cell: (row) => row.category },
        { title: 'Price', cell: (row) => row.price_label },
        { title: 'Quality', right: true, cell: (row) => <QualityOf service={row} /> },
        { title: 'Listed', cell: (row) => <When at={row.created_at} /> },
      ]}
      empty={<Empty title="No services">This account sells nothing.</Empty>}
      more={<a href={`/console/services?provider_id=${id}`}>All its services, with what can be done</a>}
    />
  );
}

export function CallsOf({ account }: TabProps) {
  const { language } = useI18n();
  const id = account.account_id;
  const list = useResource(`calls of ${id}`, async (signal) => {
    const query = { account_id: id, limit: NEWEST };
    return (await dataOf(api.value.GET('/api/v1/admin/calls', { params: { query }, signal }))).calls;
  });
  return (
    <Short
      caption="Latest calls that the account paid for"
      list={list}
      keyOf={(row) => row.usage_id}
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
        { title: 'Charged', amount: (row) => row.amount, cell: (row, text) => (row.free_tier ? 'Free' : text) },
      ]}
      empty={<Empty title="No calls in the last 24 hours">Older ones are in the list of calls.</Empty>}
      more={
        <>
          <a href={`/console/calls?account_id=${id}`}>Calls that it paid for</a>
          {' · '}
          <a href={`/console/calls?provider_id=${id}`}>Calls of its services</a>
        </>
      }
    />
  );
}

type Movement = {
  readonly kind: 'credit' | 'debit' | 'payout';
  readonly amount: number;
  readonly reference: string;
  readonly reason?: string;
  readonly created_at: string;
};

const WORDS = { credit: 'Money added', debit: 'Money taken out', payout: 'Paid out' } as const;

export function PaymentsOf({ account }: TabProps) {
  const id = account.account_id;
  const list = useResource(`payments of ${id}`, async (signal) => {
    const asked = { params: { query: { account_id: id, limit: NEWEST } }, signal };
    const [{ credits }, { debits }, { payouts }] = await Promise.all([
      dataOf(api.value.GET('/api/v1/admin/credits', asked)),
      dataOf(api.value.GET('/api/v1/admin/debits', asked)),
      dataOf(api.value.GET('/api/v1/admin/payouts', asked)),
    ]);
    const rows: Movement[] = [
      ...credits.map((row) => ({ ...row, kind: 'credit' as const })),
      ...debits.map((row) => ({ ...row, kind: 'debit' as const })),
      ...payouts.map((row) => ({ ...row, kind: 'payout' as const })),
    ];
    return rows.sort((a, b) => (a.created_at < b.created_at ? 1 : -1));
  });
  const all = (path: string, text: string) => <a href={`/console/payments/${path}?account_id=${id}`}>{text}</a>;
  return (
    <Short
      caption="Money added, taken out and paid out"
      list={list}
      keyOf={(row) => `${row.kind} ${row.reference}`}
      columns={[
        { title: 'When', cell: (row) => <When at={row.created_at} /> },
        { title: 'What', cell: (row) => WORDS[row.kind] },
        {
          title: 'Amount',
          amount: (row) => row.amount,
          cell: (row, text) => <Signed amount={row.kind === 'credit' ? row.amount : -row.amount} text={text} />,
        },
        { title: 'Reference', wide: true, cell: (row) => <span class="break">{row.reference}</span> },
        { title: 'Reason', wide: true, cell: (row) => row.reason && <span class="break">{row.reason}</span> },
      ]}
      empty={<Empty title="No payments yet">Money that is added, taken out or paid out shows here.</Empty>}
      more={
        <>
          {all('credits', 'All added')} · {all('debits', 'All taken out')} · {all('payouts', 'All paid out')}
        </>
      }
    />
  );
}

export function AuditOf({ account }: TabProps) {
  const id = account.account_id;
  const list = useResource(`audit of ${id}`, async (signal) => {
    const query = { subject: id, limit: NEWEST };
    return (await dataOf(api.value.GET('/api/v1/admin/audit', { params: { query }, signal }))).acts;
  });
  return (
    <Short
      caption="What was done to the account in the operator's name"
      list={list}
      keyOf={(act) => String(act.id)}
      columns={[
        { title: 'When', cell: (act) => <When at={act.at} /> },
        { title: 'Action', cell: (act) => <Action act={act} /> },
        { title: 'By', cell: (act) => <Actor act={act} /> },
        { title: 'What changed', wide: true, cell: (act) => <Changed act={act} /> },
      ]}
      empty={<Empty title="Nothing yet">Acts such as credits and suspensions show here.</Empty>}
      more={<a href={`/console/audit?subject=${id}`}>All of it</a>}
    />
  );
}
