import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../../api/client.ts';
import { Empty } from '../../../design/index.ts';
import { digitsOf } from '../../../i18n/format.ts';
import { useI18n } from '../../../i18n/i18n.tsx';
import { usePlace } from '../../../place.tsx';
import { api } from '../../../session.ts';
import { kindText } from '../../money/kinds.ts';
import { keyOfMovement, movementColumns, questionOf } from '../../money/money.tsx';
import { CsvExport } from '../../shared/csv-export.tsx';
import { RANGE_FILTERS } from '../../shared/days.ts';
import { type Filter, ListPage } from '../../shared/list-page.tsx';
import type { TabProps } from './short.tsx';

const FILTERS: readonly Filter[] = [
  ...RANGE_FILTERS,
  {
    name: 'ledger',
    label: 'Which money',
    options: [
      ['', 'Wallet, for calls'],
      ['earnings', 'Earnings of services'],
    ],
  },
];

const textOf = (movement: Schemas['Movement']): string =>
  movement.kind === 'payout' ? 'Paid out' : kindText(movement);

/** The calls behind a sum: those of its day, as the list has no hours. */
function callsOf(accountId: string, { kind, hour = '', service_id = '' }: Schemas['Movement']): string {
  const day = hour.slice(0, 10);
  const party = kind === 'charge' ? 'account_id' : 'provider_id';
  return `/console/calls?${new URLSearchParams({ [party]: accountId, service_id, from: day, to: day })}`;
}

/** What the account itself sees as its statement. */
export function StatementOf({ account }: TabProps) {
  const { language } = useI18n();
  const place = usePlace();
  const [digits, setDigits] = useState(2);
  const id = account.account_id;
  const exported = Object.fromEntries([...place.query].filter(([name]) => FILTERS.some((one) => one.name === name)));
  return (
    <ListPage<Schemas['Movement']>
      caption="Statement of the account"
      filters={FILTERS}
      ask={async (query, signal) => {
        const asked = api.value.GET('/api/v1/admin/accounts/{id}/statement', {
          params: { path: { id }, query: { ...questionOf(query), limit: 50 } },
          signal,
        });
        // The same address also answers in CSV, but not to this question.
        const page = (await dataOf(asked)) as Schemas['Statement'];
        setDigits(digitsOf(page.movements.flatMap(({ amount, balance }) => [amount, balance])));
        return { rows: page.movements, next: page.next_cursor };
      }}
      keyOf={keyOfMovement}
      columns={movementColumns(language, digits, textOf, (movement) => callsOf(id, movement))}
      empty={<Empty title="Nothing has moved yet">A credit puts money into the wallet, and calls take it out.</Empty>}
      actions={
        <CsvExport
          name={`statement-${id}`}
          of={JSON.stringify(exported)}
          ask={(cursor) =>
            api.value.GET('/api/v1/admin/accounts/{id}/statement', {
              params: {
                path: { id },
                query: questionOf({ ...exported, ...(cursor === undefined ? {} : { cursor }) }),
              },
              headers: { Accept: 'text/csv' },
              parseAs: 'blob',
            })
          }
        />
      }
    />
  );
}
