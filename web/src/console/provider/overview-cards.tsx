import type { Schemas } from '../../api/client.ts';
import { LinkButton } from '../../design/index.ts';
import { Card, Table } from '../../design/more.ts';
import { count, percent } from '../../i18n/format.ts';
import { QualityOf, ServiceState, uptimeText } from '../shared/cells.tsx';
import { lastDays } from '../shared/days.ts';
import { EN } from './service-words.tsx';

type Service = Schemas['Service'];
type ServiceStats = Schemas['ServiceStats'];
type Earnings = Schemas['Earnings'];

const DAYS = 30;

/** Amounts in US dollars have six decimals: further ones come from the addition. */
export const sum = (values: readonly number[]): number =>
  Math.round(values.reduce((total, value) => total + value, 0) * 1e6) / 1e6;

/** Today, a week and a month, side by side. */
export function Periods({
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
      <div class="periods">
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
            { title: 'Earned', amount: ({ earned }) => earned },
          ]}
        />
      </div>
      <p class="card-foot small soft">Calls and failures are up to a minute behind what is earned.</p>
    </Card>
  );
}

export function ServicesCard({
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
        <span class="row">
          <LinkButton small href="/console/services/new">
            List a service
          </LinkButton>
          <LinkButton small href="/console/services">
            All services
          </LinkButton>
        </span>
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
          { title: 'Status', cell: ({ status }) => <ServiceState value={status} /> },
          {
            title: 'Quality',
            right: true,
            cell: (service) => (
              <a href={`/console/services/${service.id}/quality`}>
                <QualityOf service={service} />
              </a>
            ),
          },
          { title: 'Uptime', right: true, cell: uptimeText },
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
        <p class="card-foot soft">
          These are your {shown.length} services with the most calls; calls and failures above are theirs. Earnings are
          of all.
        </p>
      )}
    </Card>
  );
}

const number = (value: number | undefined): string => (value === undefined ? '–' : count(value, EN));
