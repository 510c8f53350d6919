import type { Schemas } from '../api/client.ts';
import { Badge } from '../design/index.ts';
import { hasFewBuyers } from '../few-buyers.ts';
import { count, duration, moment, percent } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';

/** How the quality was computed, and from what. */
export function ServiceQuality({
  stats,
  service,
}: {
  readonly stats: Schemas['ServiceStats'];
  readonly service: Schemas['CallableService'];
}) {
  const { t, language } = useI18n();
  const inputs = stats.quality_inputs;
  const latency = service.track_record?.latency_ms ?? inputs?.latency_ms ?? null;
  return (
    <div class="stack">
      <h3>
        {!service.rated
          ? t('service.qualityShort')
          : t(hasFewBuyers(service) ? 'service.madeOfFew' : 'service.madeOf', {
              quality: count(stats.quality, language),
            })}
      </h3>
      {inputs === null ? (
        <p class="soft">{t(service.rated ? 'service.justJudged' : 'service.notJudged')}</p>
      ) : (
        <dl class="facts">
          <dt>{t('service.inputSuccess')}</dt>
          {/* Of no calls there is no rate. Mistakes of callers are none that count. */}
          <dd class="number">{inputs.evidence === 0 ? '–' : percent(inputs.success_rate, language)}</dd>
          <dt>{t('service.latency')}</dt>
          <dd class="number">{latency === null ? '–' : duration(latency, language)}</dd>
          <dt>{t('service.inputBuyers')}</dt>
          <dd class="number">{count(inputs.buyers, language)}</dd>
          <dt>{t('service.inputEvidence')}</dt>
          <dd class="number">{count(inputs.evidence, language)}</dd>
          <dt>{t('service.inputWhen')}</dt>
          <dd>{moment(inputs.computed_at, language)}</dd>
        </dl>
      )}
      <details class="disclosure">
        <summary>{t('service.qualityHow')}</summary>
        <ul class="prose small soft">
          <li>{t('service.qualityHow1')}</li>
          <li>{t('service.qualityHow2')}</li>
          <li>{t('service.qualityHow3')}</li>
          <li>{t('service.qualityHow4')}</li>
          <li>{t('service.qualityHow5')}</li>
        </ul>
      </details>
    </div>
  );
}

/** The trend of the quality, if the API has one. */
export function QualityTrend({ service }: { readonly service: Schemas['CallableService'] }) {
  const { t, language } = useI18n();
  const { quality_trend: change = 0 } = service as { readonly quality_trend?: number };
  if (change === 0) return null;
  const points = count(Math.abs(change), language);
  return (
    <Badge tone={change > 0 ? 'good' : 'warn'}>
      <span aria-hidden="true">
        {change > 0 ? '↑' : '↓'} {points}
      </span>
      <span class="visually-hidden">{t(change > 0 ? 'service.trendUp' : 'service.trendDown', { points })}</span>
    </Badge>
  );
}
