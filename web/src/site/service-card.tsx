import { useHref } from '../address.tsx';
import type { Schemas } from '../api/client.ts';
import { comingCost, costWords, mostOf } from '../cost.ts';
import { Badge } from '../design/index.ts';
import { count, day } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { Quality, TrackRecord } from './quality.tsx';

/** What a buyer wants to know about a service at a glance. */
export function ServiceCard({ service }: { readonly service: Schemas['ListedService'] }) {
  const href = useHref();
  const i18n = useI18n();
  const { t, language } = i18n;
  const { name, next_price: next } = service;
  const coming = comingCost(service);
  const uptime = service.uptime && `${count(service.uptime.last_30_days, language)}%`;
  return (
    <article class="card service-card">
      <div class="service-card-head">
        <Monogram name={name} of={service.category} />
        <div class="service-card-name">
          <h2>
            <a class="service-card-link" dir="auto" href={href(`/services/${service.id}`)}>
              {name}
            </a>
          </h2>
          <span class="faint small break">
            {service.category}
            {service.provider?.display_name !== undefined && (
              <>
                {' · '}
                <bdi>{service.provider.display_name}</bdi>
              </>
            )}
          </span>
        </div>
        <div class="service-card-worth">
          <Quality of={service} hasTrend />
          {uptime !== undefined && (
            <span class="faint small" title={`${t('service.uptime')}: ${uptime}`}>
              {t('catalog.uptime', { uptime })}
            </span>
          )}
        </div>
      </div>
      {service.track_record !== undefined && <TrackRecord of={service.track_record} />}
      <p class="soft small service-card-text break" dir="auto">
        {service.description}
      </p>
      <div class="service-card-foot">
        <span class="price">{service.price_label}</span>
        {service.free_calls_label !== undefined && <Badge tone="accent">{service.free_calls_label}</Badge>}
        {next !== undefined && (coming.price > service.price || mostOf(coming) > mostOf(service)) && (
          <Badge tone="warn">
            {t('catalog.nextPrice', { price: costWords(coming, i18n), day: day(next.from.slice(0, 10), language) })}
          </Badge>
        )}
      </div>
    </article>
  );
}

const TINTS = 5;

/** A letter that the eye recognises; services of a category have the same colour. */
function Monogram({ name, of }: { readonly name: string; readonly of: string }) {
  let sum = 0;
  for (let i = 0; i < of.length; i++) sum = (sum * 31 + of.charCodeAt(i)) % 997;
  const letter = String.fromCodePoint(name.codePointAt(0) ?? 0x2022).toUpperCase();
  return (
    <span class={`monogram tint-${(sum % TINTS) + 1}`} aria-hidden="true">
      {letter}
    </span>
  );
}
