import { useI18n } from '../i18n/i18n.tsx';

/** The quality of a service: a number, and five steps for the eye. */
export function Quality({ value }: { readonly value: number }) {
  const { t, language } = useI18n();
  const steps = Math.round(value / 20);
  const text = new Intl.NumberFormat(language, { maximumFractionDigits: 1 }).format(value);
  return (
    <span class="quality">
      <svg viewBox="0 0 34 12" width="34" height="12" aria-hidden="true">
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
        {text}
      </span>
      <span class="visually-hidden">{t('service.quality', { quality: text })}</span>
    </span>
  );
}
