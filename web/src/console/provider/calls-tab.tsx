import { dataOf, type Schemas } from '../../api/client.ts';
import { Badge, Empty, FailureNote, LinkButton, SkeletonCard, SkeletonStats } from '../../design/index.ts';
import { Card, Stat, Stats, TimeChart } from '../../design/more.ts';
import { count, duration, percent } from '../../i18n/format.ts';
import { useResource } from '../../resource.ts';
import { api } from '../../session.ts';
import { ByUse, When } from '../shared/cells.tsx';
import { lastDays, RANGE_FILTERS, timedRows } from '../shared/days.ts';
import { type Filter, ListPage } from '../shared/list-page.tsx';
import { causeText, outcomeOf } from '../shared/outcome.ts';
import { keptOf } from '../shared/refunds/shares.ts';
import { WhenKnown } from '../shared/when-known.tsx';
import { BlockButton, BlockedBuyers, shortOf } from './blocked-buyers.tsx';
import type { TabProps } from './service-frame.tsx';
import { EN, usd } from './service-words.tsx';

type Call = Schemas['ServiceCall'];
const DAYS = 30;
const PAGE = 50;
const FILTERS: readonly Filter[] = [
  {
    name: 'outcome',
    label: 'Outcome',
    options: [
      ['', 'All calls'],
      ['failed', 'Failed or given back whole'],
      ['completed', 'Charged, free or given back'],
    ],
  },
  ...RANGE_FILTERS,
];

/** `/console/services/{id}/calls`: the calls of buyers, and how they ended. */
export function CallsTab({ service, show }: TabProps) {
  const path = { id: service.id };
  const blocked = service.blocked_buyers ?? [];
  const isRemoved = service.status === 'removed';
  const stats = useStats(service.id, isRemoved);
  // The list is asked for meanwhile, and shown below the figures: it must not move when they come.
  const isKnown = isRemoved || stats.data !== null || stats.failure !== null;
  return (
    <WhenKnown isKnown={isKnown} waiting={<FiguresWaiting />}>
      {stats.data !== null && <CallsByDay stats={stats.data} />}
      {stats.failure !== null && <FailureNote failure={stats.failure} retry={stats.reload} />}
      {blocked.length > 0 && <BlockedBuyers service={service} show={show} />}
      <ListPage<Call>
        caption={`Calls of ${service.name}`}
        filters={FILTERS}
        file={{
          name: `calls-${service.id}`,
          ask: (query) =>
            api.value.GET('/api/v1/services/{id}/calls', {
              params: { path, query },
              headers: { Accept: 'text/csv' },
              parseAs: 'blob',
            }),
        }}
        keyOf={({ usage_id: id }) => id}
        ask={async (query, signal) => {
          const asked = { params: { path, query: { ...query, limit: PAGE } }, signal };
          const page = await dataOf(api.value.GET('/api/v1/services/{id}/calls', asked));
          return { rows: page.records, next: page.next_cursor, since: page.records_since };
        }}
        columns={[
          {
            title: 'When',
            cell: ({ created_at: at, usage_id: id }) => (
              <a href={`/console/calls/${id}`}>
                <When at={at} />
              </a>
            ),
          },
          {
            title: 'Call',
            cell: ({ method, path: called }) => (
              <code class="wide-cell">
                {method} {called}
              </code>
            ),
          },
          { title: 'Outcome', cell: (call) => <Outcome call={call} /> },
          { title: 'Took', right: true, cell: ({ latency_ms: ms }) => duration(ms, EN) },
          {
            title: 'You earn',
            amount: (call) => earnedOf(call),
            cell: (call, text) =>
              call.free_tier ? (
                <span class="faint">Free call</span>
              ) : (
                <span class="amount-lines">
                  <ByUse call={call} text={text} charged={call.amount} />
                  {call.refunded !== undefined && (
                    <span class="faint small">{usd(call.refunded)} of the price given back</span>
                  )}
                </span>
              ),
          },
          {
            title: 'Buyer',
            cell: ({ buyer }) => (
              <span class="row">
                <code title={buyer}>{shortOf(buyer)}</code>
                {!isRemoved && !blocked.includes(buyer) && <BlockButton buyer={buyer} service={service} show={show} />}
                {blocked.includes(buyer) && <Badge tone="warn">Blocked</Badge>}
              </span>
            ),
          },
        ]}
        empty={
          <Empty
            title="No calls yet"
            action={<LinkButton href={`/services/${service.id}`}>See its public page</LinkButton>}
          >
            Calls of buyers are listed here within a second. Your own test calls are not.
          </Empty>
        }
      />
    </WhenKnown>
  );
}

/** What is left of the earnings. The fee of a call is what its earnings lack to its price. */
const earnedOf = (call: Call): number =>
  keptOf({ ...call, fee: (Math.round(call.amount * 1e6) - Math.round(call.earned * 1e6)) / 1e6 }).earned;

/** The status that the buyer got, and the reason for a refund. */
function Outcome({ call }: { readonly call: Call }) {
  const { reason, text, isFailure, tone } = outcomeOf(call, 'others');
  return (
    <span class="outcome" title={text}>
      <Badge tone={isFailure ? 'bad' : reason === null ? tone : 'plain'}>
        {isFailure ? `Failed ${call.status}` : call.status === 0 ? 'Unknown' : String(call.status)}
      </Badge>
      {reason !== null && <span class="small soft">{reason}, refunded</span>}
      {call.refunded !== undefined && (
        <span class="small soft">{call.refunded === call.amount ? 'given back' : 'given back in part'}</span>
      )}
      {call.cause !== undefined && <span class="small">{causeText(call.cause) ?? call.cause}</span>}
    </span>
  );
}

/** @param isRemoved  a removed service has no statistics any more */
export function useStats(id: string, isRemoved = false) {
  return useResource(`stats ${id}`, async (signal) =>
    isRemoved ? null : dataOf(api.value.GET('/api/v1/services/{id}/stats', { params: { path: { id } }, signal })),
  );
}

const FiguresWaiting = () => (
  <>
    <SkeletonStats count={5} />
    <SkeletonCard lines={7} />
  </>
);

function CallsByDay({ stats: data }: { readonly stats: Schemas['ServiceStats'] }) {
  const { unit, times, rows } = timedRows(lastDays(DAYS), data.days, data.hours);
  return (
    <>
      <Stats>
        <Stat label="Calls, 30 days" value={count(data.calls, EN)} />
        <Stat label="Succeeded" value={count(data.succeeded, EN)} hint={rate(data.success_rate)} />
        <Stat label="Failed" value={count(data.failed, EN)} hint="Not charged, or given back whole: you earn nothing" />
        <Stat label="Mistakes of callers" value={count(data.caller_errors, EN)} hint="4xx: charged" />
        <Stat
          label="Median time, succeeded"
          value={data.latency_ms.p50 === null ? '–' : duration(data.latency_ms.p50, EN)}
          hint={data.latency_ms.p95 === null ? undefined : `95 of 100 within ${duration(data.latency_ms.p95, EN)}`}
        />
      </Stats>
      {data.calls > 0 && (
        <Card title={unit === 'day' ? 'Calls by day' : 'Calls by hour (UTC)'}>
          <TimeChart
            label={`Calls and failures by ${unit}`}
            times={times}
            unit={unit}
            series={[
              { name: 'Calls', kind: 'bar', values: rows.map((row) => row?.calls ?? null) },
              {
                name: 'Of these, failed',
                kind: 'bar',
                colour: '--bad',
                values: rows.map((row) => row?.failed ?? null),
              },
            ]}
            whole
            format={(value) => count(value, EN)}
          />
        </Card>
      )}
    </>
  );
}

const rate = (share: number | null): string =>
  share === null ? 'No calls that count yet' : `${percent(share, EN)} of those that count`;
