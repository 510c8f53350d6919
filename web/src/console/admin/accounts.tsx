import { useAddress } from '../../address.tsx';
import { dataOf } from '../../api/client.ts';
import { Empty } from '../../design/index.ts';
import { api } from '../../session.ts';
import { State, When } from '../shared/cells.tsx';
import { Id } from '../shared/ids.tsx';
import { ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { AccountPage } from './account/account.tsx';
import { isCall } from './find.tsx';
import { listFile } from './list-file.ts';
import { AccountLink } from './parts.tsx';

/** `/console/accounts`, and `/console/accounts/{id}`. */
export default function Accounts() {
  const [, id = ''] = /^\/console\/accounts\/([^/]+)\/?$/.exec(useAddress().path) ?? [];
  return id === '' ? <AccountList /> : <AccountPage key={id} id={id} />;
}

function AccountList() {
  const address = useAddress();
  return (
    <>
      <PageHead title="Accounts" lead="Everybody who buys, sells or operates." />
      <ListPage
        caption="Accounts"
        file={listFile('accounts')}
        filters={[
          { name: 'q', label: 'Label, account or key', type: 'search', placeholder: 'acme' },
          {
            name: 'status',
            label: 'Status',
            options: [
              ['', 'Any'],
              ['active', 'Active'],
              ['suspended', 'Suspended'],
              ['closed', 'Closed'],
            ],
          },
          {
            name: 'role',
            label: 'With a key for',
            options: [
              ['', 'Anything'],
              ['buyer', 'Buying'],
              ['provider', 'Selling'],
              ['admin', 'Operating'],
            ],
          },
          { name: 'min_balance', label: 'Balance from', placeholder: '0.01' },
          { name: 'unused_since', label: 'No call since', type: 'date' },
          {
            name: 'sort',
            label: 'Order',
            options: [
              ['', 'Newest'],
              ['balance', 'Balance'],
              ['last_used', 'Last call'],
            ],
          },
        ]}
        ask={async (query, signal) => {
          const page = await dataOf(
            api.value.GET('/api/v1/admin/accounts', { params: { query: { ...query, limit: 50 } }, signal }),
          );
          // Somebody who complains may name a call.
          const id = query.q?.toLowerCase() ?? '';
          if (page.accounts.length === 0 && (await isCall(id))) address.go(`/console/calls/${id}`, true);
          return { rows: page.accounts, next: page.next_cursor };
        }}
        keyOf={(account) => account.account_id}
        columns={[
          { title: 'Label', cell: (row) => <AccountLink id={row.account_id} label={row.owner_id} /> },
          { title: 'Account', cell: (row) => <Id id={row.account_id} /> },
          { title: 'Status', cell: (row) => <State value={row.status} /> },
          { title: 'Active keys', right: true, cell: (row) => row.active_keys },
          { title: 'Balance', amount: (row) => row.balance },
          { title: 'Payable', amount: (row) => row.payable },
          { title: 'Last call', cell: (row) => (row.last_used_at === null ? '–' : <When at={row.last_used_at} />) },
          { title: 'Opened', cell: (row) => <When at={row.created_at} /> },
        ]}
        empty={<Empty title="No accounts yet">The first ones open when somebody creates a key.</Empty>}
      />
    </>
  );
}
