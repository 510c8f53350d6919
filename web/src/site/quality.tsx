import { count, decimal } from '../i18n/format.ts';
import { type I18n, useI18n } from '../i18n/i18n.tsx';

/** A trend of less than this many points is none for the eye: calls age, and every quality moves a little. */
const STEADY = 0.5;

/**
 * The quality of a service: five steps for the eye, the number without its decimal, and how it moved. A service that is not rated
 * says so in words.
 *
 * @param trend    absent: not known
 * @param isRated  whether calls went into it: what nobody has called has 50, too
 */
export function Quality({
  value,
  trend,
  isRated,
}: {
  readonly value: number;
  readonly trend?: number | undefined;
  readonly isRated: boolean;
}) {
  const i18n = useI18n();
  const steps = Math.round(value / 20);
  const moves = trend !== undefined && Math.abs(trend) >= STEADY;
  if (!isRated) {
    return (
      <span class="quality quality-unknown" title={i18n.t('catalog.notRated')}>
        {i18n.t('catalog.unrated')}
      </span>
    );
  }
  const words = qualityWords(value, trend, i18n);
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

function qualityWords(value: number, trend: number | undefined, { t, language }: I18n): string {
  const quality = t('service.quality', { quality: decimal(value, language) });
  if (trend === undefined) return quality;
  if (Math.abs(trend) < STEADY) return `${quality} · ${t('catalog.trendSame')}`;
  const points = decimal(Math.abs(trend), language);
  return `${quality} · ${t(trend > 0 ? 'catalog.trendUp' : 'catalog.trendDown', { points })}`;
}
