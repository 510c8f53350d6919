import { useHref } from '../address.tsx';
import type { Schemas } from '../api/client.ts';
import { useArrival } from '../arrival.ts';
import { comingCost, costWords, mostOf } from '../cost.ts';
import { Badge, LinkButton, Note } from '../design/index.ts';
import { Stat, Stats } from '../design/service.ts';
import { count, duration, moment, money, percent } from '../i18n/format.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';
import { Quality } from './quality.tsx';
import { successOf } from './service-chart-data.ts';
import { QualityTrend } from './service-quality.tsx';

/** Name, price and quality of the service: everything needed to decide at a glance. */
export function ServiceHead({
  service,
  stats,
}: {
  readonly service: Schemas['CallableService'];
  readonly stats: Schemas['ServiceStats'] | null;
}) {
  const { t } = useI18n();
  const href = useHref();
  const arrival = useArrival();
  return (
    <header class="stack">
      <nav class="crumbs small" aria-label={t('service.crumbs')}>
        <a href={href('/')}>{t('nav.services')}</a>
        <span aria-hidden="true">/</span>
        <a href={href(`/?category=${encodeURIComponent(service.category)}`)}>{service.category}</a>
      </nav>
      <div class="service-title">
        <h1 class="break" dir="auto" {...arrival}>
          {service.name}
        </h1>
        {service.protocol === 'mcp' && <Badge tone="info">{t('service.mcpBadge')}</Badge>}
        {service.free_calls_label !== undefined && <Badge tone="accent">{service.free_calls_label}</Badge>}
        <span class="service-try">
          <LinkButton kind="primary" href="#try">
            {t('try.title')}
          </LinkButton>
        </span>
      </div>
      <Figures service={service} stats={stats} />
      <NextPrice service={service} />
    </header>
  );
}

function Figures({ service, stats }: Parameters<typeof ServiceHead>[0]) {
  const i18n = useI18n();
  const { t, language } = i18n;
  const recent = stats ?? service.stats ?? null;
  const { latency_ms: latency = null } = recent ?? {};
  const { rate, calls } = successOf(service, stats);
  const typical = service.track_record?.latency_ms ?? latency?.p50 ?? null;
  return (
    <Stats>
      <Stat
        label={t('service.price')}
        value={<span class="service-price">{service.price_label}</span>}
        hint={priceHint(service, i18n)}
      />
      <UsualCost stats={stats} />
      <Stat
        label={t('service.qualityShort')}
        value={
          <span class="service-quality-figure">
            <Quality of={service} />
            <QualityTrend service={service} />
          </span>
        }
        hint={<a href="#quality">{t('service.qualityWhy')}</a>}
      />
      <Stat
        label={t('service.successRate')}
        value={rate === null ? '–' : percent(rate, language)}
        hint={
          calls === null
            ? t('service.noCallsYet')
            : calls === 0
              ? t('service.callsNone')
              : t('service.callsCounted', { count: calls })
        }
      />
      <Stat
        label={t('service.latency')}
        value={typical === null ? '–' : duration(typical, language)}
        hint={
          typical === null
            ? t('service.latencyNone')
            : // Of few calls, one slow buyer can make the typical time longer than the percentile of all calls.
              latency?.p95 != null &&
              latency.p95 >= typical &&
              t('service.latencyP95', { p95: duration(latency.p95, language) })
        }
      />
      {service.uptime !== undefined && (
        <Stat
          label={t('service.uptime')}
          value={`${count(service.uptime.last_30_days, language)}%`}
          hint={
            service.uptime.last_24_hours === undefined
              ? t('service.uptimeDays')
              : t('service.uptimeDay', { day: `${count(service.uptime.last_24_hours, language)}%` })
          }
        />
      )}
    </Stats>
  );
}

function priceHint(service: Schemas['CallableService'], { t, language }: I18n): string {
  const low = Math.min(...service.operations.map(({ price }) => price));
  const high = Math.max(...service.operations.map(mostOf));
  if (service.operations.length > 0 && (low !== service.price || high !== mostOf(service))) {
    return low === high
      ? t('service.priceOperations', { price: money(low, language) })
      : t('service.priceRange', { low: money(low, language), high: money(high, language) });
  }
  if (service.max_price !== undefined) return t('service.priceByUse');
  return t(service.price === 0 ? 'service.priceFree' : 'service.priceRefund');
}

/** What calls priced by use have cost. It reveals a service that always charges the maximum. */
function UsualCost({ stats }: Pick<Parameters<typeof ServiceHead>[0], 'stats'>) {
  const { t, language } = useI18n();
  const { median = null, at_cap: share = null } = stats?.price_charged ?? {};
  if (share === null) return null;
  return (
    <Stat
      label={t('service.cost')}
      value={median === null ? '–' : money(median, language)}
      hint={t('service.atCap', { share: percent(share, language) })}
    />
  );
}

/** A higher price is announced before it counts. */
function NextPrice({ service }: { readonly service: Schemas['CallableService'] }) {
  const i18n = useI18n();
  const { t, language } = i18n;
  const { next_price: next } = service;
  if (next === undefined) return null;
  const coming = comingCost(service);
  const isSame = coming.price === service.price && coming.max_price === service.max_price;
  const from = moment(next.from, language);
  return (
    <Note tone="warn">
      <span>
        {isSame ? t('service.nextTerms', { from }) : t('service.nextPrice', { price: costWords(coming, i18n), from })}
        {next.free_calls !== undefined && ` ${t('service.nextFreeCalls', { count: next.free_calls })}`}
        {next.operations !== undefined && ` ${t('service.nextOperations')}`}
        <NextOperations of={next.operations ?? []} />
      </span>
    </Note>
  );
}

type Coming = NonNullable<NonNullable<Schemas['CallableService']['next_price']>['operations']>;

/** Old and new price of each operation; the words above introduce the list. */
function NextOperations({ of }: { readonly of: Coming }) {
  const i18n = useI18n();
  const priced = (price: number | undefined, max: number | undefined): string =>
    price === undefined ? '–' : costWords({ price, max_price: max }, i18n);
  if (of.length === 0) return null;
  return (
    <ul class="small">
      {of.map(({ method, path, tool, price, old_price: old, max_price: max, old_max_price: oldMax }) => (
        <li key={`${method} ${path} ${tool}`} class="break">
          <code>{tool ?? `${method} ${path}`}</code>: {priced(old, oldMax)} → {priced(price, max)}
        </li>
      ))}
    </ul>
  );
}
