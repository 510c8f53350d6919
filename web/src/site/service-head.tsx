import type { Schemas } from '../api/client.ts';
import { useArrival } from '../arrival.ts';
import { Badge, LinkButton, Note, Stat, Stats } from '../design/index.ts';
import { count, duration, moment, money, percent } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useHref } from '../place.tsx';
import { Quality } from './quality.tsx';
import { QualityTrend } from './service-quality.tsx';

/** What the service is called, costs and is worth: all that decides at a glance. */
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
        <h1 class="break" {...arrival}>
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
  const { t, language } = useI18n();
  const recent = stats ?? service.stats ?? null;
  const prices = new Set(service.operations.map(({ price }) => price));
  const calls = recent?.calls ?? 0;
  const { success_rate: rate = null, latency_ms: latency = null } = recent ?? {};
  return (
    <Stats>
      <Stat
        label={t('service.price')}
        value={<span class="service-price">{service.price_label}</span>}
        hint={
          prices.size === 1 && !prices.has(service.price)
            ? t('service.priceOperations', { price: money(Math.min(...prices), language) })
            : prices.size > 1
              ? t('service.priceRange', {
                  low: money(Math.min(...prices), language),
                  high: money(Math.max(...prices), language),
                })
              : service.price === 0
                ? t('service.priceFree')
                : t('service.priceRefund')
        }
      />
      <Stat
        label={t('service.qualityShort')}
        value={
          <span class="service-quality-figure">
            <Quality value={service.quality} isRated={service.rated} />
            <QualityTrend service={service} />
          </span>
        }
        hint={<a href="#quality">{t('service.qualityWhy')}</a>}
      />
      <Stat
        label={t('service.successRate')}
        value={rate === null ? '–' : percent(rate, language)}
        hint={calls === 0 ? t('service.noCallsYet') : t('service.callsInDays', { count: calls })}
      />
      <Stat
        label={t('service.latency')}
        value={latency === null || latency.p50 === null ? '–' : duration(latency.p50, language)}
        hint={
          latency === null || latency.p95 === null
            ? t('service.latencyNone')
            : t('service.latencyP95', { p95: duration(latency.p95, language) })
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

/** A higher price is announced before it counts. */
function NextPrice({ service: { next_price: next, price } }: { readonly service: Schemas['CallableService'] }) {
  const { t, language } = useI18n();
  if (next === undefined) return null;
  const from = moment(next.from, language);
  return (
    <Note tone="warn">
      <span>
        {next.price === price
          ? t('service.nextTerms', { from })
          : t('service.nextPrice', { price: money(next.price, language), from })}
        {next.free_calls !== undefined && ` ${t('service.nextFreeCalls', { count: next.free_calls })}`}
        {next.operations !== undefined && ` ${t('service.nextOperations')}`}
        <NextOperations of={next.operations ?? []} />
      </span>
    </Note>
  );
}

type Coming = NonNullable<NonNullable<Schemas['CallableService']['next_price']>['operations']>;

/** Old and new price of each; the words above say what the list is. */
function NextOperations({ of }: { readonly of: Coming }) {
  const { language } = useI18n();
  const priced = (price: number | undefined): string => (price === undefined ? '–' : money(price, language));
  if (of.length === 0) return null;
  return (
    <ul class="small">
      {of.map(({ method, path, tool, price, old_price: old }) => (
        <li key={`${method} ${path} ${tool}`} class="break">
          <code>{tool ?? `${method} ${path}`}</code>: {priced(old)} → {priced(price)}
        </li>
      ))}
    </ul>
  );
}
