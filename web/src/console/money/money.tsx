import './money.css';
import { useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../../api/client.ts';
import { type Column, Empty } from '../../design/index.ts';
import { digitsOf, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { usePlace } from '../../place.tsx';
import { api, session } from '../../session.ts';
import { Signed, When } from '../shared/call-cells.tsx';
import { CsvExport } from '../shared/csv-export.tsx';
import { RANGE_FILTERS, rangeOf } from '../shared/days.ts';
import { type Filter, ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { kindText } from './kinds.ts';
import { Wallet } from './wallet.tsx';

type Movement = Schemas['Movement'];
type Statement = Schemas['Statement'];
type Query = { ledger?: 'wallet' | 'earnings'; from?: string; to?: string; cursor?: string };

const PAGE_SIZE = 50;
const LEDGERS: Readonly<Record<string, Filter>> = {
  provider: {
    name: 'ledger',
    label: 'Which money',
    options: [
      ['', 'Earnings of services'],
      ['wallet', 'Wallet, for calls'],
    ],
  },
  admin: {
    name: 'ledger',
    label: 'Which money',
    options: [
      ['', 'Wallet, for calls'],
      ['earnings', 'Earnings of services'],
    ],
  },
};

/** `/console/money` of buyers and `/console/statement` of the others: what moved the account's money. */
export default function Money() {
  const { language } = useI18n();
  const place = usePlace();
  const [digits, setDigits] = useState(2);
  const me = session.value?.me;
  if (me === undefined) return null;
  const isBuyer = me.role === 'buyer';
  const ledger = LEDGERS[me.role];
  const filters: readonly Filter[] = [...RANGE_FILTERS, ...(ledger === undefined ? [] : [ledger])];
  const exported = Object.fromEntries([...place.query].filter(([name]) => filters.some((one) => one.name === name)));
  return (
    <>
      <PageHead
        title={isBuyer ? 'Money' : 'Statement'}
        lead="Every movement of the account's money, over all of its keys, newest first."
      />
      {isBuyer && <Wallet account={me.account_id} />}
      <ListPage<Movement>
        caption="Statement"
        filters={filters}
        ask={async (query, signal) => {
          const asked = api.value.GET('/api/v1/statement/me', {
            params: { query: { ...questionOf(query), limit: PAGE_SIZE } },
            signal,
          });
          // The same address also answers in CSV, but not to this question.
          const page = (await dataOf(asked)) as Statement;
          setDigits(digitsOf(page.movements.flatMap(({ amount, balance }) => [amount, balance])));
          return { rows: page.movements, next: page.next_cursor };
        }}
        keyOf={keyOfMovement}
        empty={
          <Empty title="Nothing has moved yet">
            {isBuyer
              ? 'Money that is added, and what calls cost, stands here with the balance after it.'
              : 'What calls of your services earn, fees and payouts stand here with the balance after them.'}
          </Empty>
        }
        actions={
          <CsvExport
            name="statement"
            of={JSON.stringify(exported)}
            ask={(cursor) =>
              api.value.GET('/api/v1/statement/me', {
                params: { query: questionOf({ ...exported, ...(cursor === undefined ? {} : { cursor }) }) },
                headers: { Accept: 'text/csv' },
                parseAs: 'blob',
              })
            }
          />
        }
        columns={movementColumns(language, digits, kindText)}
      />
    </>
  );
}

export const keyOfMovement = ({ at, kind, service_id, reference, balance }: Movement): string =>
  `${at} ${kind} ${service_id ?? reference} ${balance}`;

/**
 * @param textOf  what moved the money, as whoever looks calls it
 * @param hrefOf  where a movement of a service leads
 */
export const movementColumns = (
  language: string,
  digits: number,
  textOf: (movement: Movement) => string,
  hrefOf = (movement: Movement): string => `/services/${movement.service_id}`,
): Column<Movement>[] => [
  {
    title: 'When',
    cell: ({ at, hour }) => <When at={at} hour={hour} language={language} />,
  },
  { title: 'What', cell: (movement) => <What movement={movement} text={textOf(movement)} href={hrefOf(movement)} /> },
  {
    title: 'Amount',
    right: true,
    cell: ({ amount }) => <Signed amount={amount} language={language} digits={digits} />,
  },
  { title: 'Balance', right: true, cell: ({ balance }) => money(balance, language, digits) },
];

/** The filters of the address as the API takes them. */
export function questionOf(query: Readonly<Record<string, string>>): Query {
  const { ledger, cursor } = query;
  return {
    ...rangeOf(query),
    ...(ledger === 'wallet' || ledger === 'earnings' ? { ledger } : {}),
    ...(cursor === undefined ? {} : { cursor }),
  };
}

function What({ movement, text, href }: { readonly movement: Movement; readonly text: string; readonly href: string }) {
  const { service_id, service_name, reference, reason } = movement;
  return (
    <span class="movement">
      <span>
        {text}
        {service_id !== undefined && (
          <>
            {' '}
            <a class="break" href={href}>
              {service_name === undefined || service_name === '' ? 'a removed service' : service_name}
            </a>
          </>
        )}
      </span>
      {reference !== undefined && <span class="small soft break">Reference: {reference}</span>}
      {reason !== undefined && <span class="small soft break">Reason: {reason}</span>}
    </span>
  );
}
