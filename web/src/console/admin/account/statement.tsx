import { useAddress } from '../../../address.tsx';
import { dataOf, type Schemas } from '../../../api/client.ts';
import { Empty, FailureNote, SkeletonPage } from '../../../design/index.ts';
import { useResource } from '../../../resource.ts';
import { api } from '../../../session.ts';
import { kindText } from '../../money/kinds.ts';
import { keyOfMovement, movementColumns, withHad } from '../../money/money.tsx';
import { RANGE_FILTERS } from '../../shared/days.ts';
import { type Filter, ListPage } from '../../shared/list-page.tsx';
import type { TabProps } from './short.tsx';

type Ledger = 'wallet' | 'earnings';
const LEDGERS: Readonly<Record<Ledger, string>> = { wallet: 'Balance for calls', earnings: 'Earnings' };

/** @param first the one that is shown without a choice @param chosen as the address names it */
const filtersOf = (first: Ledger, second: Ledger, chosen: string | null): readonly Filter[] => [
  ...RANGE_FILTERS,
  {
    name: 'ledger',
    label: 'Which money',
    isView: true,
    options: [
      [chosen === first ? first : '', LEDGERS[first]],
      [second, LEDGERS[second]],
    ],
  },
];

const textOf = (movement: Schemas['Movement']): string =>
  movement.kind === 'payout' ? 'Paid out' : kindText(movement);

/** The calls behind a sum: those of its day, because the list cannot be filtered by hour. */
function callsOf(accountId: string, { kind, at, service_id = '', usage_id }: Schemas['Movement']): string {
  if (usage_id !== undefined) return `/console/calls?${new URLSearchParams({ service_id })}`;
  const day = at.slice(0, 10);
  const party = kind === 'charge' ? 'account_id' : 'provider_id';
  return `/console/calls?${new URLSearchParams({ [party]: accountId, service_id, from: day, to: day })}`;
}

/** The statement, as the account itself sees it: of what it earned, if it ever did. */
export function StatementOf({ account }: TabProps) {
  const address = useAddress();
  const id = account.account_id;
  const path = { id };
  const earned = useResource(`earned by ${id}`, (signal) => {
    const asked = { params: { path, query: { ledger: 'earnings' as const, limit: 1 } }, signal };
    return dataOf(api.value.GET('/api/v1/admin/accounts/{id}/statement', asked));
  });
  if (earned.data === null) {
    return earned.failure === null ? (
      <SkeletonPage shape="list" />
    ) : (
      <FailureNote failure={earned.failure} retry={earned.reload} />
    );
  }
  const [first, second]: readonly [Ledger, Ledger] =
    earned.data.movements.length === 0 ? ['wallet', 'earnings'] : ['earnings', 'wallet'];
  const shown = address.query.get('ledger') ?? first;
  return (
    <ListPage<Schemas['Movement']>
      caption="Statement of the account"
      filters={filtersOf(first, second, address.query.get('ledger'))}
      ask={async (query, signal) => {
        const asked = api.value.GET('/api/v1/admin/accounts/{id}/statement', {
          params: { path, query: { ledger: first, ...query, limit: 50 } },
          signal,
        });
        const page = await dataOf(asked);
        return { rows: withHad(page.movements), next: page.next_cursor };
      }}
      keyOf={keyOfMovement}
      columns={movementColumns(textOf, (movement) => callsOf(id, movement))}
      empty={
        <Empty title="Nothing has moved yet">
          {shown === 'earnings'
            ? 'This account has earned nothing.'
            : 'Money that is added and the cost of calls appear here, each with the balance after it.'}
        </Empty>
      }
      file={{
        name: `statement-${id}`,
        ask: (query) =>
          api.value.GET('/api/v1/admin/accounts/{id}/statement', {
            params: { path, query: { ledger: first, ...query } },
            headers: { Accept: 'text/csv' },
            parseAs: 'blob',
          }),
      }}
    />
  );
}
