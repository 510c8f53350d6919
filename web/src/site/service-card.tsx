import type { Schemas } from '../api/client.ts';
import { Badge } from '../design/index.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useHref } from '../place.tsx';
import { Quality } from './quality.tsx';

/** What a buyer wants to know of a service at a glance. */
export function ServiceCard({ service }: { readonly service: Schemas['ListedService'] }) {
  const href = useHref();
  const { t } = useI18n();
  return (
    <article class="card service-card">
      <h2>
        <a class="service-card-link" href={href(`/services/${service.id}`)}>
          {service.name}
        </a>
      </h2>
      <p class="soft small service-card-text break">{service.description}</p>
      <div class="service-card-foot">
        <span class="price">{service.price_label}</span>
        {service.free_calls_label !== undefined && <Badge tone="accent">{service.free_calls_label}</Badge>}
        <Badge>{service.category}</Badge>
        <span class="service-card-quality" title={t('service.quality', { quality: service.quality })}>
          <Quality value={service.quality} />
        </span>
      </div>
    </article>
  );
}
