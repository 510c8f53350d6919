import './provider.css';
import { dataOf, type Schemas } from '../../api/client.ts';
import { Card, FailureNote, LinkButton, Note, Skeleton, Stat, Stats, Table, TimeChart } from '../../design/index.ts';
import { count, percent } from '../../i18n/format.ts';
import { type Resource, useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { PageHead } from '../shared/page-head.tsx';
import { lastDays, perDay, secondsOf } from './days.ts';
import { FirstSteps } from './first-steps.tsx';
import { EN, StatusBadge, usd } from './service-words.tsx';

type Service = Schemas['Service'];
type ServiceStats = Schemas['ServiceStats'];
type Earnings = Schemas['Earnings'];

const DAYS = 30;
/** Statistics cost a request for each service, of the key's sixty a minute. */
const MAX_WITH_STATS = 8;

/** `/console` of a provider: how business goes, and what to do next. */
export default function Overview() {
  const key = session.value?.me.key_id;
  const earnings = useResource(`earnings ${key}`, (signal) => dataOf(api.value.GET('/api/v1/earnings/me', { signal })));
  const services = useResource(`services ${key}`, (signal) =>
    dataOf(api.value.GET('/api/v1/services', { params: { query: { mine: true, limit: 100, lang: EN } }, signal })),
  );
  const chosen = mostCalled(services.data?.services ?? [], earnings.data);
  const stats = useResource(`stats ${chosen.map(({ id }) => id).join()}`, (signal) => statsOf(chosen, signal));
  const isNew = services.data !== null && earnings.data !== null && earnings.data.by_day.length === 0;
  return (
    <>
      <PageHead
        title="Overview"
        actions={
          services.data !== null &&
          services.data.services.length > 0 && <LinkButton href="/console/services/new">List a service</LinkButton>
        }
      />
      {isNew && <FirstSteps services={services.data?.services ?? []} />}
      <Failed of={[earnings, services]} />
      {earnings.data === null ? (
        earnings.failure === null && <Skeleton lines={4} />
      ) : (
        <Money earnings={earnings.data} />
      )}
      {services.data !== null && services.data.services.length > 0 && (
        <>
          <Periods earnings={earnings.data} stats={stats.data} />
          <ServicesCard
            services={services.data.services}
            shown={chosen}
            hasMore={services.data.next_cursor !== undefined}
            stats={stats.data}
          />
          {stats.failure !== null && <FailureNote failure={stats.failure} retry={stats.reload} />}
        </>
      )}
    </>
  );
}

function Failed({ of }: { readonly of: readonly Resource<unknown>[] }) {
  const failed = of.find(({ failure }) => failure !== null);
  return failed === undefined ? null : (
    <FailureNote failure={failed.failure} retry={() => of.forEach(({ reload }) => void reload())} />
  );
}

/** Those with the most calls of buyers, then the newest. */
function mostCalled(services: readonly Service[], earnings: Earnings | null): Service[] {
  const calls = new Map((earnings?.by_service ?? []).map((row) => [row.service_id, row.calls]));
  return [...services].sort((a, b) => (calls.get(b.id) ?? 0) - (calls.get(a.id) ?? 0)).slice(0, MAX_WITH_STATS);
}

async function statsOf(services: readonly Service[], signal: AbortSignal): Promise<Map<string, ServiceStats>> {
  const found = await Promise.all(
    services.map(({ id }) =>
      dataOf(api.value.GET('/api/v1/services/{id}/stats', { params: { path: { id } }, signal })),
    ),
  );
  return new Map(found.map((stats) => [stats.service_id, stats]));
}

function Money({ earnings }: { readonly earnings: Earnings }) {
  const days = lastDays(DAYS);
  const earned = perDay(days, earnings.by_day, (row) => row.earned);
  return (
    <>
      <Stats>
        <Stat
          label="Payable now"
          value={usd(earnings.payable)}
          hint={<a href="/console/earnings">How you are paid</a>}
        />
        <Stat label="Earned, 30 days" value={usd(sum(earned))} hint="After the platform's fee" />
        <Stat label="Earned in all" value={usd(earnings.earned)} />
        <Stat label="Paid out" value={usd(earnings.paid_out)} hint={<a href="/console/statement">Statement</a>} />
      </Stats>
      {!earnings.complete && (
        <Note>
          Calls stored by an earlier version are still being summed, so sums are too low for now. Payable is right.
        </Note>
      )}
      {earnings.by_day.length > 0 && (
        <Card title="Earned by day">
          <TimeChart
            label="Earned by day, last 30 days"
            times={days.map(secondsOf)}
            series={[{ name: 'Earned', kind: 'bar', values: earned }]}
            format={usd}
          />
        </Card>
      )}
    </>
  );
}

const sum = (values: readonly number[]): number =>
  Math.round(values.reduce((total, value) => total + value, 0) * 1e6) / 1e6;

/** Today, a week and a month, side by side. */
function Periods({
  earnings,
  stats,
}: {
  readonly earnings: Earnings | null;
  readonly stats: ReadonlyMap<string, ServiceStats> | null;
}) {
  if (earnings === null) return null;
  const rows = (
    [
      ['Today', 1],
      ['7 days', 7],
      ['30 days', DAYS],
    ] as const
  ).map(([title, length]) => {
    const days = new Set(lastDays(length));
    const all = [...(stats?.values() ?? [])].flatMap((of) => of.days).filter(({ day }) => days.has(day));
    const earned = earnings.by_day.filter(({ day }) => days.has(day)).map((row) => row.earned);
    const [calls, failed, succeeded] = (['calls', 'failed', 'succeeded'] as const).map((name) =>
      sum(all.map((row) => row[name])),
    ) as [number, number, number];
    return { title, calls, failed, succeeded, earned: sum(earned) };
  });
  const shown = (value: number): string => (stats === null ? '–' : count(value, EN));
  return (
    <Card flush title="Calls of buyers (days in UTC)">
      <Table
        caption="Calls, failures and earnings by period"
        rows={rows}
        keyOf={({ title }) => title}
        columns={[
          { title: 'Period', cell: ({ title }) => title },
          { title: 'Calls', right: true, cell: ({ calls }) => shown(calls) },
          { title: 'Failed', right: true, cell: ({ failed }) => shown(failed) },
          {
            title: 'Success',
            right: true,
            cell: ({ succeeded, failed }) =>
              succeeded + failed === 0 ? '–' : percent(succeeded / (succeeded + failed), EN),
          },
          { title: 'Earned', right: true, cell: ({ earned }) => usd(earned) },
        ]}
      />
    </Card>
  );
}

function ServicesCard({
  services,
  shown,
  hasMore,
  stats,
}: {
  readonly services: readonly Service[];
  readonly shown: readonly Service[];
  readonly hasMore: boolean;
  readonly stats: ReadonlyMap<string, ServiceStats> | null;
}) {
  const isPart = hasMore || services.length > shown.length;
  return (
    <Card
      flush
      title="Services"
      actions={
        <LinkButton small href="/console/services">
          All services
        </LinkButton>
      }
    >
      <Table
        caption="Services with their quality and failures of 30 days"
        rows={shown}
        keyOf={({ id }) => id}
        columns={[
          {
            title: 'Service',
            cell: ({ id, name }) => (
              <a class="wide-cell" href={`/console/services/${id}`}>
                {name}
              </a>
            ),
          },
          { title: 'Status', cell: ({ status }) => <StatusBadge status={status} /> },
          {
            title: 'Quality',
            right: true,
            cell: ({ id, quality }) => <a href={`/console/services/${id}/quality`}>{quality.toFixed(1)}</a>,
          },
          { title: 'Calls, 30 days', right: true, cell: ({ id }) => number(stats?.get(id)?.calls) },
          {
            title: 'Failed',
            right: true,
            cell: ({ id }) => {
              const failed = stats?.get(id)?.failed;
              if (failed === undefined || failed === 0) return number(failed);
              return <a href={`/console/services/${id}/calls?outcome=failed`}>{number(failed)}</a>;
            },
          },
        ]}
      />
      {isPart && (
        <p class="card-tail small soft">
          These are your {shown.length} services with the most calls; calls and failures above are theirs. Earnings are
          of all.
        </p>
      )}
    </Card>
  );
}

const number = (value: number | undefined): string => (value === undefined ? '–' : count(value, EN));
