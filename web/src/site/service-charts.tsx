import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import type { Schemas } from '../api/client.ts';
import { Empty } from '../design/index.ts';
import { Card, TimeChart } from '../design/service.ts';
import { count, duration, money, percent } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { chartData, hourData } from './service-chart-data.ts';

/** The last 30 days. Without calls it says so, instead of showing four empty charts. */
export function ServiceCharts({ stats }: { readonly stats: Schemas['ServiceStats'] }) {
  const { t, language } = useI18n();
  // The gateway renders the sums; drawing the charts needs a browser.
  const [drawn, setDrawn] = useState(false);
  useEffect(() => setDrawn(true), []);
  if (stats.calls === 0) {
    return (
      <Card>
        <Empty title={t('service.noCallsTitle')}>{t('service.noCallsText')}</Empty>
      </Card>
    );
  }
  const number = (value: number): string => count(value, language);
  return (
    <div class="stack">
      <p class="soft small">
        {t('service.sums', {
          count: stats.calls,
          succeeded: number(stats.succeeded),
          failed: number(stats.failed),
          errors: number(stats.caller_errors),
        })}
      </p>
      {drawn ? <Charts stats={stats} /> : <div class="service-charts-space" />}
    </div>
  );
}

const DAY_S = 86_400;

function Charts({ stats }: { readonly stats: Schemas['ServiceStats'] }) {
  const { t, language } = useI18n();
  const data = chartData(stats.days, Date.now());
  const hours = stats.hours === undefined ? null : hourData(stats.hours, Date.now());
  const counted = hours ?? data;
  const isEmpty = (...lines: readonly (readonly (number | null)[])[]): boolean =>
    lines.flat().every((value) => value === null);
  const nothing = <p class="soft small">{t('service.latencyNone')}</p>;
  const wasCharged = stats.price_charged.median !== null;
  const byDay = { times: data.times, height: 180, language };
  // Prices are known by day only. Beside charts of hours they begin where those do.
  const first = hours === null ? 0 : data.times.findIndex((time) => time + DAY_S > (hours.times[0] ?? 0));
  const usual = { ...byDay, times: counted.times, unit: hours === null ? ('day' as const) : ('hour' as const) };
  const latencies =
    hours === null
      ? [
          { name: 'p50', values: data.p50 },
          { name: 'p95', values: data.p95 },
        ]
      : [{ name: t('service.inputLatency'), values: hours.latency }];
  return (
    <div class="service-charts">
      <ChartCard title={t('service.chartCalls')}>
        <TimeChart
          {...usual}
          label={t('service.chartCalls')}
          format={(value) => count(value, language)}
          stacked
          whole
          series={[
            { name: t('service.failed'), values: counted.failed, kind: 'bar', colour: '--bad' },
            { name: t('service.callerErrors'), values: counted.callerErrors, kind: 'bar', colour: '--series-3' },
            { name: t('service.others'), values: counted.others, kind: 'bar', colour: '--series-5' },
            { name: t('service.succeeded'), values: counted.succeeded, kind: 'bar', colour: '--series-1' },
          ]}
        />
      </ChartCard>
      <ChartCard title={t('service.chartSuccess')}>
        {isEmpty(counted.successRate) ? (
          nothing
        ) : (
          <TimeChart
            {...usual}
            top={1}
            label={t('service.chartSuccess')}
            format={(value) => percent(value, language)}
            series={[{ name: t('service.successRate'), values: counted.successRate }]}
          />
        )}
      </ChartCard>
      <ChartCard title={t('service.chartLatency')}>
        {isEmpty(...latencies.map(({ values }) => values)) ? (
          nothing
        ) : (
          <TimeChart
            {...usual}
            label={t('service.chartLatency')}
            format={(value) => duration(value, language)}
            series={latencies}
          />
        )}
      </ChartCard>
      <ChartCard title={t('service.chartPrice')}>
        {wasCharged ? (
          <TimeChart
            {...byDay}
            times={data.times.slice(first)}
            label={t('service.chartPrice')}
            format={(value) => money(value, language)}
            series={[
              { name: t('service.median'), values: data.priceMedian.slice(first) },
              { name: 'p95', values: data.priceP95.slice(first) },
            ]}
          />
        ) : (
          <p class="soft small">{t('service.nothingCharged')}</p>
        )}
      </ChartCard>
    </div>
  );
}

function ChartCard({ title, children }: { readonly title: string; readonly children: ComponentChildren }) {
  return (
    <section class="card service-chart">
      <h3>{title}</h3>
      {children}
    </section>
  );
}
