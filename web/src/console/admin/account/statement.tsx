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

/** @param first the one that is shown without a choice */
const filtersOf = (first: Ledger, second: Ledger): readonly Filter[] => [
  ...RANGE_FILTERS,
  {
    name: 'ledger',
    label: 'Which money',
    options: [
      ['', LEDGERS[first]],
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

/** The statement, as the account itself sees it: of what it earned, if it has earned anything. */
export function StatementOf({ account }: TabProps) {
  const id = account.account_id;
  const path = { id };
  const earned = useResource(`earnings of ${id}`, async (signal) => {
    const query = { ledger: 'earnings', limit: 1 } as const;
    const asked = api.value.GET('/api/v1/admin/accounts/{id}/statement', { params: { path, query }, signal });
    return (await dataOf(asked)).movements.length > 0;
  });
  if (earned.data === null) {
    return earned.failure === null ? (
      <SkeletonPage shape="list" />
    ) : (
      <FailureNote failure={earned.failure} retry={earned.reload} />
    );
  }
  const [first, second]: readonly [Ledger, Ledger] = earned.data ? ['earnings', 'wallet'] : ['wallet', 'earnings'];
  return (
    <ListPage<Schemas['Movement']>
      caption="Statement of the account"
      filters={filtersOf(first, second)}
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
      empty={<Empty title="Nothing has moved yet">Money that is added and the cost of calls show here.</Empty>}
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
