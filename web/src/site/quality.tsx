import type { Schemas } from '../api/client.ts';
import { hasFewBuyers } from '../few-buyers.ts';
import { count, decimal, duration, percent } from '../i18n/format.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';

/** A trend of fewer points than this is not shown: calls age, and every quality moves a little. */
const STEADY = 0.5;

type Judged = Pick<Schemas['ListedService'], 'quality' | 'quality_trend' | 'track_record'>;

/**
 * The quality of a service: five steps for the eye, the number without its decimal, and how it moved. A service that few buyers have
 * called, or none, says so in words.
 */
export function Quality({ of, hasTrend = false }: { readonly of: Judged; readonly hasTrend?: boolean }) {
  const { quality: value, track_record: record } = of;
  const trend = hasTrend ? of.quality_trend : undefined;
  const i18n = useI18n();
  const steps = Math.round(value / 20);
  const moves = trend !== undefined && Math.abs(trend) >= STEADY;
  if (record === undefined) {
    return (
      <span class="quality quality-unknown" title={i18n.t('catalog.notRated')}>
        {i18n.t('catalog.unrated')}
      </span>
    );
  }
  const words = qualityWords(value, trend, i18n);
  if (hasFewBuyers(of)) {
    return (
      <span class="quality quality-unknown" title={words}>
        {i18n.t('catalog.fewBuyers')}
      </span>
    );
  }
  return (
    <span class="quality" title={words}>
      {moves && (
        <span class={trend > 0 ? 'trend trend-up' : 'trend trend-down'} aria-hidden="true">
          <svg viewBox="0 0 8 8" width="8" height="8" aria-hidden="true">
            <path d={trend > 0 ? 'M4 1 7.5 7h-7z' : 'M4 7 7.5 1h-7z'} />
          </svg>
          {decimal(Math.abs(trend), i18n.language)}
        </span>
      )}
      <svg class="quality-steps" viewBox="0 0 33 12" width="33" height="12" aria-hidden="true">
        {[0, 1, 2, 3, 4].map((step) => (
          <rect
            key={step}
            x={step * 7}
            y={9 - step * 2}
            width="5"
            height={3 + step * 2}
            rx="1"
            class={step < steps ? 'quality-on' : 'quality-off'}
          />
        ))}
      </svg>
      <span class="number" aria-hidden="true">
        {count(Math.round(value), i18n.language)}
      </span>
      <span class="visually-hidden">{words}</span>
    </span>
  );
}

/** '100% of 201 calls · 12 buyers · 3 ms': figures by which anybody can judge a service. */
export function TrackRecord({ of: record }: { readonly of: NonNullable<Judged['track_record']> }) {
  const { t, language } = useI18n();
  const { calls, buyers, success_rate: rate, latency_ms: latency } = record;
  const parts = [
    t('catalog.record', { rate: percent(rate, language), count: calls }),
    t('catalog.buyers', { count: buyers }),
    ...(latency === undefined ? [] : [duration(latency, language)]),
  ];
  return (
    <p class="track-record small" title={t('catalog.recordWhy')}>
      {parts.join(' · ')}
    </p>
  );
}

function qualityWords(value: number, trend: number | undefined, { t, language }: I18n): string {
  const quality = t('service.quality', { quality: decimal(value, language) });
  if (trend === undefined) return quality;
  if (Math.abs(trend) < STEADY) return `${quality} · ${t('catalog.trendSame')}`;
  const points = decimal(Math.abs(trend), language);
  return `${quality} · ${t(trend > 0 ? 'catalog.trendUp' : 'catalog.trendDown', { points })}`;
}
