import './money.css';
import { useAddress } from '../../address.tsx';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Empty } from '../../design/index.ts';
import type { Column } from '../../design/more.ts';
import { api, session } from '../../session.ts';
import { Signed, When } from '../shared/cells.tsx';
import { RANGE_FILTERS } from '../shared/days.ts';
import { Id } from '../shared/ids.tsx';
import { type Filter, ListPage } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { kindText } from './kinds.ts';
import { Wallet } from './wallet.tsx';

type Movement = Schemas['Movement'] & {
  /** Whether the account really had the balance: not if calls of a newer sum began before the last call of this one. */
  readonly wasHad?: boolean;
};

const PAGE_SIZE = 50;
const LEDGERS: Readonly<Record<string, Filter>> = {
  provider: {
    name: 'ledger',
    label: 'Statement of',
    isView: true,
    options: [
      ['', 'Earnings'],
      ['wallet', 'Balance for calls'],
    ],
  },
  admin: {
    name: 'ledger',
    label: 'Statement of',
    isView: true,
    options: [
      ['', 'Balance for calls'],
      ['earnings', 'Earnings'],
    ],
  },
};

/** `/console/money` for buyers and `/console/statement` for others: what moved the account's money. */
export default function Money() {
  const { query } = useAddress();
  const me = session.value?.me;
  if (me === undefined) return null;
  const isBuyer = me.role === 'buyer';
  if (me.parent_key_id !== undefined) return <MoneyOfChild account={me.account_id} />;
  const ledger = LEDGERS[me.role];
  const chosen = query.get('ledger') ?? '';
  const isOfCalls = me.role === 'provider' ? chosen === 'wallet' : chosen !== 'earnings';
  const filters: readonly Filter[] = [...RANGE_FILTERS, ...(ledger === undefined ? [] : [ledger])];
  return (
    <>
      <PageHead
        title={isBuyer ? 'Money' : 'Statement'}
        lead="Every movement of the account's money, over all of its keys, newest first."
      />
      {isBuyer && <Wallet account={me.account_id} isWhole />}
      <ListPage<Movement>
        caption="Statement"
        filters={filters}
        ask={async (query, signal) => {
          const asked = api.value.GET('/api/v1/statement/me', {
            params: { query: { ...query, limit: PAGE_SIZE } },
            signal,
          });
          const page = await dataOf(asked);
          return { rows: withHad(page.movements), next: page.next_cursor };
        }}
        keyOf={keyOfMovement}
        empty={
          <Empty title="Nothing has moved yet">
            {isOfCalls
              ? 'Money that is added and the cost of calls appear here, each with the balance after it.'
              : 'Earnings, fees and payouts appear here, each with the balance after it.'}
          </Empty>
        }
        file={{
          name: 'statement',
          ask: (query) =>
            api.value.GET('/api/v1/statement/me', {
              params: { query },
              headers: { Accept: 'text/csv' },
              parseAs: 'blob',
            }),
        }}
        columns={movementColumns(kindText)}
      />
    </>
  );
}

/** A child key sees only what it can spend, because the statement is about the whole account. */
function MoneyOfChild({ account }: { readonly account: string }) {
  return (
    <>
      <PageHead
        title="Money"
        lead="What this key can spend. The statement of the account is for its keys without a parent."
      />
      <Wallet account={account} />
    </>
  );
}

/** @param movements newest first, of whole hours, so that those that overlap are all there */
export function withHad(movements: readonly Schemas['Movement'][]): Movement[] {
  let began = '';
  return movements.map((movement, i) => {
    const { at, from = at, service_id: id } = movement;
    const above = movements[i - 1];
    // The fee of the same calls is above what they earned.
    const isOfSame = above !== undefined && above.service_id === id && above.from === from && above.at === at;
    const wasHad = isOfSame || began === '' || began >= at;
    if (began === '' || from < began) began = from;
    return { ...movement, wasHad };
  });
}

export const keyOfMovement = ({ at, kind, service_id, usage_id, reference, balance }: Movement): string =>
  `${at} ${kind} ${usage_id ?? service_id ?? reference} ${balance}`;

/**
 * @param textOf what moved the money, in words for the reader
 * @param hrefOf the link of a movement of a service
 */
export const movementColumns = (
  textOf: (movement: Movement) => string,
  hrefOf: (movement: Movement) => string = callsOf,
): Column<Movement>[] => [
  {
    title: 'When',
    cell: ({ at, from }) => <When at={at} from={from} />,
  },
  {
    title: 'What',
    wide: true,
    cell: (movement) => <What movement={movement} text={textOf(movement)} href={hrefOf(movement)} />,
  },
  {
    title: 'Amount',
    amount: ({ amount }) => Math.abs(amount),
    cell: ({ amount }, text) => <Signed amount={amount} text={text} />,
  },
  {
    title: 'Balance',
    amount: ({ balance }) => balance,
    cell: ({ wasHad = true }, text) =>
      wasHad ? (
        text
      ) : (
        <span class="faint small" title="These calls alternated with those above: the balance after both is there">
          in the row above
        </span>
      ),
  },
];

/** The calls behind a sum: those of its day, because the list cannot be filtered by hour. */
function callsOf({ kind, at, service_id = '' }: Movement): string {
  const day = at.slice(0, 10);
  if (kind === 'charge') return `/console/calls?${new URLSearchParams({ service_id, from: day, to: day })}`;
  return kind === 'earning' ? `/console/services/${service_id}/calls` : `/services/${service_id}`;
}

function What({ movement, text, href }: { readonly movement: Movement; readonly text: string; readonly href: string }) {
  const { service_id, service_name, usage_id, reference, reason } = movement;
  return (
    <span class="movement">
      <span>
        {text}
        {usage_id !== undefined && (
          <>
            {' '}
            <Id id={usage_id} href={`/console/calls/${usage_id}`} /> of
          </>
        )}
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
