import { useHref } from '../address.tsx';
import { useArrival } from '../arrival.ts';
import { LinkButton } from '../design/index.ts';
import { money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';

/** What this is, in ten seconds: a sentence, the path of a call, and where to go next. */
export function Hero() {
  const { t, language } = useI18n();
  const href = useHref();
  const arrival = useArrival();
  const steps = [
    ['agent', t('hero.agent'), t('hero.agentText')],
    ['gate', t('hero.gate'), t('hero.gateText')],
    ['service', t('hero.service'), t('hero.serviceText', { price: money(0.002, language) })],
  ] as const;
  return (
    <section class="hero">
      <div class="hero-words">
        <h1 {...arrival}>{t('hero.heading')}</h1>
        <p class="soft">{t('hero.lead')}</p>
        <div class="hero-acts">
          <LinkButton kind="primary" href="#services">
            {t('hero.browse')}
          </LinkButton>
          <LinkButton href={href('/console')}>{t('hero.console')}</LinkButton>
        </div>
      </div>
      <ol class="way">
        {steps.map(([icon, name, text]) => (
          <li key={icon} class={`way-step way-${icon}`}>
            <Icon name={icon} />
            <strong>{name}</strong>
            <span class="way-text">{text}</span>
          </li>
        ))}
      </ol>
      <p class="hero-sell faint">
        {t('hero.sellText')} <a href={href('/console/services/new')}>{t('hero.sell')}</a>
      </p>
    </section>
  );
}

const SHAPES = {
  agent: 'M5 8.5h14v10H5zM12 8.5V5M9.3 13v1.6M14.7 13v1.6M2.5 12v3M21.5 12v3',
  gate: 'M6 20V9.5M6 10.5 20 5M3 20h18',
  service: 'M4 5h16v5.5H4zM4 13.5h16V19H4zM7.5 7.8h.01M7.5 16.2h.01M11 7.8h5.5M11 16.2h5.5',
} as const;

const Icon = ({ name }: { readonly name: keyof typeof SHAPES }) => (
  <svg class="way-icon" viewBox="0 0 24 24" width="22" height="22" aria-hidden="true">
    <path d={SHAPES[name]} />
  </svg>
);
