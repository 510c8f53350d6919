import { useEffect } from 'preact/hooks';
import { useAddress, useHref } from '../address.tsx';
import { Skeleton, SkeletonCard, SkeletonStats } from '../design/index.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { serviceTitle } from '../title.ts';
import { seenService } from './seen.ts';

/** The page of a service while its file or data are loading: what the catalog knows about it, and placeholders for the rest. */
export function ServiceWaiting() {
  const { t } = useI18n();
  const href = useHref();
  const { path } = useAddress();
  const service = seenService(path.split('/')[2] ?? '');
  useEffect(() => {
    if (service !== null) document.title = serviceTitle(service.name);
  }, [service]);
  return (
    <div class="page service" aria-busy="true">
      <div class="stack">
        <nav class="crumbs small" aria-label={t('service.crumbs')}>
          <a href={href('/')}>{t('nav.services')}</a>
          <span aria-hidden="true">/</span>
          {service !== null && (
            <a href={href(`/?category=${encodeURIComponent(service.category)}`)}>{service.category}</a>
          )}
        </nav>
        <div class="service-title">
          {service === null ? (
            <h1 class="skeleton service-unknown">{t('page.loading')}</h1>
          ) : (
            <h1 class="break" dir="auto">
              {service.name}
            </h1>
          )}
        </div>
        <SkeletonStats count={4} />
      </div>
      <div class="stack service-about">
        {service === null ? (
          <Skeleton lines={3} />
        ) : (
          <p class="service-description break" dir="auto">
            {service.description}
          </p>
        )}
        <div class="service-facts">
          <Skeleton lines={2} />
          <Skeleton lines={2} />
          <Skeleton lines={2} />
        </div>
      </div>
      <SkeletonCard lines={12} />
    </div>
  );
}
