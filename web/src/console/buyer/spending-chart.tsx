import { Card, Empty, FailureNote, Select, TimeChart } from '../../design/index.ts';
import { count, money } from '../../i18n/format.ts';
import { useI18n } from '../../i18n/i18n.tsx';
import { usePlace, withQuery } from '../../place.tsx';
import { useResource } from '../../resource.ts';
import { lastDays, secondsOf } from '../shared/days.ts';
import { type Usage, usageOf } from './usage.ts';

const PERIODS = [
  ['', '30 days'],
  ['7', '7 days'],
  ['90', '90 days'],
  ['365', 'a year'],
] as const;

/** Spending by day. The choice of service and period stands in the address. @param usage  of 30 days and all services */
export function SpendingChart({ usage }: { readonly usage: Usage | null }) {
  const { language } = useI18n();
  const place = usePlace();
  const service = place.query.get('service') ?? '';
  const period = PERIODS.find(([value]) => value === place.query.get('days'))?.[0] ?? '';
  const days = lastDays(period === '' ? 30 : Number(period), Date.now());
  const from = days[0] ?? '';
  const isAll = service === '' && period === '';
  const chosen = useResource<Usage | null>(`${from} ${service}`, async (signal) =>
    isAll ? null : usageOf({ from, limit: 1, ...(service === '' ? {} : { service_id: service }) }, signal),
  );
  const shown = isAll ? usage : chosen.data;
  const byDay = new Map(shown?.by_day.map((day) => [day.day, day]));
  const services = usage?.by_service ?? [];
  const choose = (name: string, value: string): void => place.go(withQuery(place, { [name]: value }), true);
  return (
    <Card
      title="Spending by day"
      actions={
        <div class="chart-choices">
          <Select
            label="Service"
            value={service}
            onChange={(event) => choose('service', event.currentTarget.value)}
            options={[
              ['', 'All services'],
              ...services.map(({ service_id, service_name }) => [service_id, service_name] as const),
              // A shared address may name a service that was not called in this time.
              ...(service === '' || services.some(({ service_id }) => service_id === service)
                ? []
                : [[service, shown?.by_service[0]?.service_name ?? 'Another service'] as const]),
            ]}
          />
          <Select
            label="Time"
            value={period}
            onChange={(event) => choose('days', event.currentTarget.value)}
            options={PERIODS}
          />
        </div>
      }
    >
      {chosen.failure !== null && <FailureNote failure={chosen.failure} retry={chosen.reload} />}
      <div aria-busy={shown === null || chosen.loading}>
        {shown?.total_spent === 0 ? (
          <Empty title="Nothing was spent">
            {shown.total_calls === 0
              ? 'No calls in this time. What calls cost is shown here by day.'
              : 'All calls in this time were free or refunded.'}
          </Empty>
        ) : (
          <TimeChart
            label="Spending by day"
            times={days.map(secondsOf)}
            series={[{ name: 'Spent', kind: 'bar', values: days.map((day) => byDay.get(day)?.spent ?? 0) }]}
            format={(value) => money(value, language)}
            language={language}
            height={220}
          />
        )}
      </div>
      <p class="small soft">
        {shown === null
          ? '…'
          : `${money(shown.total_spent, language)} for ${count(shown.total_calls, language)} ` +
            `${shown.total_calls === 1 ? 'call' : 'calls'}, ` +
            `${count(shown.free_calls, language)} of them free. Days are UTC.`}
      </p>
    </Card>
  );
}
