import { useEffect, useRef, useState } from 'preact/hooks';
import { dataOf, type Schemas } from '../api/client.ts';
import { Empty, FailureNote, LinkButton, Skeleton } from '../design/index.ts';
import { useFirstData } from '../first-data.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useHref, usePlace, withQuery } from '../place.tsx';
import { useResource } from '../resource.ts';
import { api } from '../session.ts';
import { Filters } from './filters.tsx';
import { ServiceCard } from './service-card.tsx';

/** As many as fill a screen of any size; src/routes/site.ts asks for the same number. */
export const PAGE_SIZE = 24;
/** Parameters of the page that are those of `GET /discover`. */
const FILTERS = ['q', 'category', 'min_quality', 'max_price', 'free', 'sort'] as const;

type Found = Schemas['FoundServices'];

/** `/`: what can be called. Its address is the search, so it can be shared. */
export function CatalogPage() {
  const { t, language } = useI18n();
  const place = usePlace();
  const href = useHref();
  const search = searchOf(place.query);
  const first = useFirstData<Found>('discover');
  const page = useResource(
    `${language} ${JSON.stringify(search)}`,
    (signal) =>
      dataOf(
        api.value.GET('/api/v1/discover', {
          params: { query: { ...search, lang: language, limit: PAGE_SIZE } },
          signal,
        }),
      ),
    first,
  );
  const more = useMore(page.data, search, language);
  useEffect(() => {
    document.title = t('site.title');
  }, [t]);
  const services = [...(page.data?.services ?? []), ...more.services];
  const isFiltered = Object.keys(search).some((name) => name !== 'sort');
  return (
    <div class="page stack catalog">
      <div class="hero">
        <h1>{t('catalog.heading')}</h1>
        <p class="soft">{t('catalog.lead')}</p>
      </div>
      <Filters categories={page.data?.categories ?? []} />
      <p class="soft small" role="status">
        {page.data === null ? t('catalog.loading') : t('catalog.found', { count: page.data.total })}
      </p>
      {page.failure !== null && <FailureNote failure={page.failure} retry={page.reload} />}
      {page.data === null && page.failure === null && <Skeleton lines={6} />}
      {page.data !== null && services.length === 0 && (
        <Empty
          title={t(isFiltered ? 'catalog.emptyTitle' : 'catalog.nothingTitle')}
          action={isFiltered && <LinkButton href={href('/')}>{t('catalog.clear')}</LinkButton>}
        >
          {t(isFiltered ? 'catalog.emptyText' : 'catalog.nothingText')}
        </Empty>
      )}
      <ul class="cards" aria-busy={page.loading}>
        {services.map((service) => (
          <li key={service.id}>
            <ServiceCard service={service} />
          </li>
        ))}
      </ul>
      {more.failure !== null && <FailureNote failure={more.failure} />}
      {more.cursor !== null && (
        <div class="more">
          {/* A link, so that those without scripts and crawlers get on too. */}
          <LinkButton
            href={withQuery(place, { cursor: more.cursor })}
            onClick={(event) => {
              event.preventDefault();
              event.stopPropagation();
              void more.load();
            }}
          >
            {t('catalog.more')}
          </LinkButton>
        </div>
      )}
    </div>
  );
}

type Search = {
  readonly q?: string;
  readonly category?: string;
  readonly min_quality?: number;
  readonly max_price?: number;
  readonly free?: boolean;
  readonly sort?: 'quality' | 'price' | 'name' | 'newest';
  readonly cursor?: string;
};

function searchOf(query: URLSearchParams): Search {
  const search: Record<string, string | number | boolean> = {};
  for (const name of [...FILTERS, 'cursor']) {
    const value = query.get(name);
    if (value === null || value === '') continue;
    if (name === 'free') search.free = value === 'true';
    else search[name] = name === 'min_quality' || name === 'max_price' ? Number(value) : value;
  }
  return search;
}

/** The pages behind the first one. They are forgotten when the search changes. */
function useMore(first: Found | null, search: Search, language: string) {
  const [state, setState] = useState<{ of: Found | null; services: Found['services']; cursor: string | null }>({
    of: null,
    services: [],
    cursor: null,
  });
  const [failure, setFailure] = useState<unknown>(null);
  const loading = useRef(false);
  const isCurrent = state.of === first;
  const cursor = isCurrent ? state.cursor : (first?.next_cursor ?? null);
  const load = async (): Promise<void> => {
    if (loading.current || cursor === null) return;
    loading.current = true;
    try {
      const query = { ...search, lang: language, limit: PAGE_SIZE, cursor };
      const next = await dataOf(api.value.GET('/api/v1/discover', { params: { query } }));
      setFailure(null);
      setState((before) => ({
        of: first,
        services: [...(before.of === first ? before.services : []), ...next.services],
        cursor: next.next_cursor ?? null,
      }));
    } catch (error) {
      setFailure(error);
    } finally {
      loading.current = false;
    }
  };
  return { services: isCurrent ? state.services : [], cursor, failure, load };
}
