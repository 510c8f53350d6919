import './provider.css';
import { dataOf, type Schemas } from '../../api/client.ts';
import { FailureNote, SkeletonCard, SkeletonPage } from '../../design/index.ts';
import { Card, Stat, Stats, TimeChart } from '../../design/more.ts';
import { type Resource, useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { lastDays, timedRows } from '../shared/days.ts';
import { PageHead } from '../shared/page-head.tsx';
import { FirstSteps } from './first-steps.tsx';
import { Periods, ServicesCard, sum } from './overview-cards.tsx';
import { EN, usd } from './service-words.tsx';

type Service = Schemas['Service'];
type ServiceStats = Schemas['ServiceStats'];
type Earnings = Schemas['Earnings'];

const DAYS = 30;
/** Maximum services with statistics: each costs one of the key's sixty requests a minute. */
const MAX_WITH_STATS = 8;

/** `/console` of a provider: how business goes, and what to do next. */
export default function Overview() {
  const key = session.value?.me.key_id;
  const earnings = useResource(`earnings ${key}`, (signal) => dataOf(api.value.GET('/api/v1/earnings/me', { signal })));
  const services = useResource(`services ${key}`, (signal) =>
    dataOf(api.value.GET('/api/v1/services', { params: { query: { mine: true, limit: 100, lang: EN } }, signal })),
  );
  // Waits for both: the earnings tell which services are called most, and asking twice would cost twice.
  const isKnown = services.data !== null && (earnings.data !== null || earnings.failure !== null);
  const chosen = isKnown ? mostCalled(services.data?.services ?? [], earnings.data) : [];
  const stats = useResource(`stats ${chosen.map(({ id }) => id).join()}`, (signal) => statsOf(chosen, signal));
  const known = isKnown && chosen.every(({ id }) => stats.data?.has(id)) ? stats.data : null;
  const isNew = services.data !== null && earnings.data !== null && earnings.data.by_day.length === 0;
  return (
    <>
      <PageHead title="Overview" lead="What your services earn, and how their calls go." />
      {isNew && <FirstSteps services={services.data?.services ?? []} feePercent={earnings.data?.fee_percent ?? 0} />}
      <Failed of={[earnings, services]} />
      {/* Both, because first steps may stand above the money. */}
      {earnings.data === null || (services.data === null && services.failure === null) ? (
        earnings.failure === null && <SkeletonPage shape="figures" />
      ) : (
        <Money earnings={earnings.data} />
      )}
      {!isKnown || services.data === null || services.data.services.length === 0 ? null : known === null &&
        stats.failure === null ? (
        <SkeletonCard lines={9} />
      ) : (
        <>
          <Periods earnings={earnings.data} stats={known} />
          <ServicesCard
            services={services.data.services}
            shown={chosen}
            hasMore={services.data.next_cursor !== undefined}
            stats={known}
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

/** The services with the most calls of buyers, then the newest. */
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
  const { unit, times, rows } = timedRows(days, earnings.by_day, earnings.by_hour);
  const lastDay = earnings.by_day.filter(({ day }) => day >= (days[0] ?? ''));
  return (
    <>
      <Stats>
        <Stat
          label="Payable now"
          value={usd(earnings.payable)}
          hint={<a href="/console/earnings">How you are paid</a>}
        />
        <Stat
          label="Earned, 30 days"
          value={usd(sum(lastDay.map(({ earned }) => earned)))}
          hint={`After the platform's fee of ${earnings.fee_percent}%`}
        />
        <Stat label="Earned in all" value={usd(earnings.earned)} />
        <Stat label="Paid out" value={usd(earnings.paid_out)} hint={<a href="/console/statement">Statement</a>} />
      </Stats>
      {earnings.by_day.length > 0 && (
        <Card title={unit === 'day' ? 'Earned by day' : 'Earned by hour (UTC)'}>
          <TimeChart
            label={`Earned by ${unit}`}
            times={times}
            unit={unit}
            series={[{ name: 'Earned', kind: 'bar', values: rows.map((row) => row?.earned ?? null) }]}
            format={usd}
          />
        </Card>
      )}
    </>
  );
}
