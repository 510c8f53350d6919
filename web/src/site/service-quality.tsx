import type { Schemas } from '../api/client.ts';
import { Badge } from '../design/index.ts';
import { count, duration, moment, percent } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';

/** What the quality was made from, and how. */
export function ServiceQuality({ stats }: { readonly stats: Schemas['ServiceStats'] }) {
  const { t, language } = useI18n();
  const inputs = stats.quality_inputs;
  return (
    <div class="stack">
      <h3>{t('service.madeOf', { quality: count(stats.quality, language) })}</h3>
      {inputs === null ? (
        <p class="soft">{t('service.notJudged')}</p>
      ) : (
        <dl class="facts">
          <dt>{t('service.inputSuccess')}</dt>
          <dd class="number">{percent(inputs.success_rate, language)}</dd>
          <dt>{t('service.inputLatency')}</dt>
          <dd class="number">{inputs.latency_ms === null ? '–' : duration(inputs.latency_ms, language)}</dd>
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

/** Where the quality is going, if the API tells. */
export function QualityTrend({ service }: { readonly service: Schemas['CallableService'] }) {
  const { t } = useI18n();
  const trend = (service as { readonly quality_trend?: unknown }).quality_trend;
  const change = typeof trend === 'number' ? trend : trend === 'rising' ? 1 : trend === 'falling' ? -1 : 0;
  if (change === 0) return null;
  return change > 0 ? (
    <Badge tone="good">↗ {t('catalog.trendUp')}</Badge>
  ) : (
    <Badge tone="warn">↘ {t('catalog.trendDown')}</Badge>
  );
}
