import './provider.css';
import { useAddress } from '../../address.tsx';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Empty, FailureNote, LinkButton, SkeletonPage } from '../../design/index.ts';
import { Card, CopyButton, Stat, Stats, Table, TimeChart } from '../../design/more.ts';
import { count } from '../../i18n/format.ts';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { daysBetween, lastDays, RANGE_FILTERS, rangeOf, timedRows, today } from '../shared/days.ts';
import { FilterForm, queryOf } from '../shared/list-page.tsx';
import { PageHead } from '../shared/page-head.tsx';
import { EN, usd } from './service-words.tsx';

type Earnings = Schemas['Earnings'];

/** `/console/earnings`: what services earned, by day and by service, and what is payable. The range is in the address. */
export default function EarningsPage() {
  const address = useAddress();
  const range = queryOf(address.query, ['from', 'to']);
  const key = `earnings ${session.value?.me.key_id} ${JSON.stringify(range)}`;
  const { data, failure, loading, reload } = useResource(key, (signal) =>
    dataOf(api.value.GET('/api/v1/earnings/me', { params: { query: rangeOf(range) }, signal })),
  );
  const isAll = Object.keys(range).length === 0;
  return (
    <>
      <PageHead
        title="Earnings"
        lead="What buyers paid for calls of your services, less what was given back and the platform's fee. Failed calls are refunded, and earn nothing."
        actions={<LinkButton href="/console/statement">Statement and payouts</LinkButton>}
      />
      <FilterForm filters={RANGE_FILTERS} query={range} />
      {failure !== null && <FailureNote failure={failure} retry={reload} />}
      {data === null && failure === null && <SkeletonPage shape="figures" />}
      {data !== null && (
        <div class="stack-wide" aria-busy={loading}>
          <Sums earnings={data} isAll={isAll} />
          {data.by_day.length === 0 ? (
            <Card>
              {isAll ? (
                <Empty
                  title="Nothing earned yet"
                  action={<LinkButton href="/console/services">To your services</LinkButton>}
                >
                  The first paid call of a buyer shows up here within a second.
                </Empty>
              ) : (
                <Empty
                  title="Nothing earned in these days"
                  action={<LinkButton href={address.path}>Show all</LinkButton>}
                />
              )}
            </Card>
          ) : (
            <Split earnings={data} range={range} />
          )}
        </div>
      )}
      {(data !== null || failure !== null) && <Payout />}
    </>
  );
}

/** Shown while `payable` is negative: an operator gave back more than the earnings that had not been paid out. */
const OVERDRAWN = 'The platform gave back more than was payable to you. New earnings cover that first';

function Sums({ earnings, isAll }: { readonly earnings: Earnings; readonly isAll: boolean }) {
  const within = isAll ? undefined : 'In these days';
  return (
    <Stats>
      <Stat
        label="Payable now"
        value={usd(earnings.payable)}
        hint={earnings.payable < 0 ? OVERDRAWN : isAll ? 'Not paid out yet' : 'Whatever the days'}
      />
      <Stat label="Buyers paid" value={usd(earnings.gross)} hint={within} />
      {earnings.refunded > 0 && (
        <Stat label="Given back" value={usd(earnings.refunded)} hint={within ?? 'Of calls that were charged'} />
      )}
      <Stat
        label="Platform's fee"
        value={usd(earnings.fees)}
        hint={within ?? `${earnings.fee_percent}% of new calls`}
      />
      <Stat label="You earned" value={usd(earnings.earned)} hint={within} />
      <Stat label="Paid out" value={usd(earnings.paid_out)} hint={within} />
    </Stats>
  );
}

function Split({ earnings, range }: { readonly earnings: Earnings; readonly range: Readonly<Record<string, string>> }) {
  const [monthAgo = today()] = lastDays(30);
  const oldest = earnings.by_day.at(-1)?.day ?? monthAgo;
  const first = range.from === undefined && oldest > monthAgo ? monthAgo : oldest;
  const last = range.to === undefined ? today() : (earnings.by_day[0]?.day ?? today());
  const endsNow = range.to === undefined || range.to >= today();
  const { unit, times, rows } = timedRows(
    daysBetween(first, last),
    earnings.by_day,
    endsNow ? earnings.by_hour : undefined,
  );
  return (
    <>
      <Card title={unit === 'day' ? 'By day' : 'By hour (UTC)'}>
        <TimeChart
          label={`Charged and earned by ${unit}`}
          times={times}
          unit={unit}
          series={[
            { name: 'Buyers paid', kind: 'bar', values: rows.map((row) => row?.gross ?? null) },
            { name: 'Of this, you earned', kind: 'bar', values: rows.map((row) => row?.earned ?? null) },
          ]}
          format={usd}
        />
      </Card>
      <Card flush title="By service">
        <Table
          caption="Earnings by service"
          rows={earnings.by_service}
          keyOf={(row) => row.service_id}
          columns={[
            {
              title: 'Service',
              cell: (row) => (
                <a class="wide-cell" href={`/console/services/${row.service_id}/calls`}>
                  {row.service_name}
                </a>
              ),
            },
            { title: 'Calls charged or free', right: true, cell: (row) => count(row.calls, EN) },
            { title: 'of these free', right: true, cell: (row) => count(row.free_calls, EN) },
            { title: 'Buyers paid', amount: (row) => row.gross },
            { title: 'Given back', amount: (row) => row.refunded },
            { title: 'Fee', amount: (row) => row.fees },
            { title: 'You earned', amount: (row) => row.earned, cell: (_, text) => <strong>{text}</strong> },
          ]}
        />
      </Card>
    </>
  );
}

function Payout() {
  const account = session.value?.me.account_id ?? '';
  return (
    <Card title="How you are paid">
      <div class="stack-tight small">
        <p>
          The gateway moves no money. The operator pays you outside, and records it as a payout with a reference; it is
          in your <a href="/console/statement">statement</a> from then on. Tell them how to pay you, and your account
          id:
        </p>
        <span class="row-tight">
          <code class="break">{account}</code>
          <CopyButton text={account} />
        </span>
      </div>
    </Card>
  );
}
