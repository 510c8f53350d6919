import { useAddress } from '../../address.tsx';
import { dataOf } from '../../api/client.ts';
import { Empty, LinkButton } from '../../design/index.ts';
import type { Column } from '../../design/more.ts';
import { money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { api } from '../../session.ts';
import { When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { Id } from '../shared/ids.tsx';
import { ListPage, type Rows } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { listFile } from './list-file.ts';
import { withIds } from './name-or-id.ts';
import { AccountLink } from './parts.tsx';

type Kind = 'credits' | 'debits' | 'payouts' | 'refunds';
type Row = {
  readonly account_id: string;
  readonly owner_id: string;
  readonly amount: number;
  readonly reference: string;
  readonly reason?: string;
  readonly created_at: string;
  /** Refunds only. */
  readonly usage_id?: string;
  readonly by?: 'provider' | 'operator';
  readonly carried?: number;
};

const KINDS: readonly (readonly [kind: Kind, title: string])[] = [
  ['credits', 'Added'],
  ['debits', 'Taken out'],
  ['payouts', 'Paid out'],
  ['refunds', 'Given back'],
];
const TITLES: ReadonlyMap<Kind, string> = new Map(KINDS);
const HELP: Readonly<Record<Kind, string>> = {
  credits: 'To add money, open the account.',
  debits: 'Money shows once it is taken out. To take some out, open the account.',
  payouts: 'To record a payout, open the account of the provider.',
  refunds: 'To give back a call that was charged, open the call.',
};

/** `/console/payments/{credits, debits, payouts or refunds}`. */
export default function Payments() {
  const { path } = useAddress();
  const kind = KINDS.find(([name]) => path.replace(/\/$/, '').endsWith(`/${name}`))?.[0] ?? 'credits';
  const reason: Column<Row>[] =
    kind === 'debits' || kind === 'refunds'
      ? [{ title: 'Reason', wide: true, cell: (row) => <span class="break">{row.reason}</span> }]
      : [];
  return (
    <>
      <PageHead title="Payments" lead="Money that was moved other than by calls: in, out, and to providers." />
      <nav class="tabs" aria-label="Kinds of payments">
        {KINDS.map(([name, title]) => (
          <a
            key={name}
            class="tab"
            href={`/console/payments/${name}`}
            aria-current={name === kind ? 'page' : undefined}
          >
            {title}
          </a>
        ))}
      </nav>
      <ListPage
        key={kind}
        caption={kind}
        file={listFile(kind)}
        filters={[
          { name: 'account_id', label: 'Account', placeholder: 'Label or id' },
          { name: 'reference', label: 'Reference' },
          ...RANGE_FILTERS,
        ]}
        ask={(query, signal) => list(kind, query, signal)}
        keyOf={(row) => `${row.usage_id ?? ''} ${row.by ?? ''} ${row.reference}`}
        columns={[
          { title: 'When', cell: (row) => <When at={row.created_at} /> },
          { title: 'Account', cell: (row) => <AccountLink id={row.account_id} label={row.owner_id} /> },
          ...(kind === 'refunds' ? [REFUNDED_CALL] : []),
          { title: 'Amount', amount: (row) => row.amount, cell: (row, text) => <Amount row={row} text={text} /> },
          { title: 'Reference', wide: true, cell: (row) => <span class="break">{row.reference}</span> },
          ...reason,
        ]}
        empty={
          <Empty
            title={`Nothing ${TITLES.get(kind)?.toLowerCase()} yet`}
            action={<LinkButton href="/console/accounts">Accounts</LinkButton>}
          >
            {HELP[kind]}
          </Empty>
        }
      />
    </>
  );
}

const REFUNDED_CALL: Column<Row> = {
  title: 'Call',
  cell: ({ usage_id: id = '', by }) => (
    <>
      <Id id={id} href={`/console/calls/${id}`} />
      <span class="below">by {by === 'provider' ? 'its provider' : 'an operator'}</span>
    </>
  ),
};

/** For a refund, also the part that the platform pays because the earnings did not cover it. */
function Amount({ row: { carried = 0 }, text }: { readonly row: Row; readonly text: string }) {
  const { language } = useI18n();
  return (
    <>
      {text}
      {carried > 0 && <span class="below">{money(carried, language)} carried</span>}
    </>
  );
}

async function list(kind: Kind, query: Readonly<Record<string, string>>, signal: AbortSignal): Promise<Rows<Row>> {
  const asked = { params: { query: { ...(await withIds(query, signal)), limit: 50 } }, signal };
  if (kind === 'debits') {
    const { debits, next_cursor } = await dataOf(api.value.GET('/api/v1/admin/debits', asked));
    return { rows: debits, next: next_cursor };
  }
  if (kind === 'refunds') {
    const { refunds, next_cursor } = await dataOf(api.value.GET('/api/v1/admin/refunds', asked));
    return { rows: refunds, next: next_cursor };
  }
  if (kind === 'payouts') {
    const { payouts, next_cursor } = await dataOf(api.value.GET('/api/v1/admin/payouts', asked));
    return { rows: payouts, next: next_cursor };
  }
  const { credits, next_cursor } = await dataOf(api.value.GET('/api/v1/admin/credits', asked));
  return { rows: credits, next: next_cursor };
}
