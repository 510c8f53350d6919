import { useEffect, useRef, useState } from 'preact/hooks';
import { useAddress, useHref, withQuery } from '../address.tsx';
import { dataOf, type Schemas } from '../api/client.ts';
import { Empty, LinkButton, Skeleton } from '../design/index.ts';
import { useFirstData } from '../first-data.ts';
import { count } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { useResource } from '../resource.ts';
import { api } from '../session.ts';
import { SearchFailure, useFirstFailure } from './failure.tsx';
import { Filters } from './filters.tsx';
import { Hero } from './hero.tsx';
import { type Search, searchOf } from './search.ts';
import { remember } from './seen.ts';
import { ServiceCard } from './service-card.tsx';

/** As many as fill a screen of any size; src/routes/site.ts asks for the same number. */
const PAGE_SIZE = 24;
/** Maximum categories, the largest ones: more would need a page of their own. */
const MOST_CATEGORIES = 30;
/** As many as fill a screen. */
const CARDS_WAITING = 9;
type Found = Schemas['FoundServices'];

/** `/`: what can be called. The search is in the address, so it can be shared. */
export function CatalogPage() {
  const { t, language } = useI18n();
  const address = useAddress();
  const href = useHref();
  const search = searchOf(address.query);
  const first = useFirstData<Found>('discover');
  const firstFailure = useFirstFailure();
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
  useEffect(() => remember(services), [services.length, page.data]);
  const failure = page.failure ?? (page.data === null ? firstFailure : null);
  const isFiltered = Object.keys(search).some((name) => name !== 'sort');
  return (
    <div class="page catalog">
      <Hero />
      <Filters categories={page.data?.categories ?? []} />
      <div class="row-between found">
        <p class="soft small" role="status">
          {page.data === null
            ? failure === null && t('catalog.loading')
            : t('catalog.found', { count: page.data.total })}
        </p>
        {isFiltered && (
          <a class="small" href={href('/')}>
            {t(search.cursor === undefined ? 'catalog.clear' : 'catalog.firstPage')}
          </a>
        )}
      </div>
      {failure !== null && <SearchFailure failure={failure} retry={page.reload} />}
      {page.data === null && failure === null && <CardsWaiting />}
      {page.data !== null && services.length === 0 && (
        <Empty
          title={t(isFiltered ? 'catalog.emptyTitle' : 'catalog.nothingTitle')}
          action={
            <LinkButton href={href(isFiltered ? '/' : '/console')}>
              {t(isFiltered ? 'catalog.clear' : 'hero.console')}
            </LinkButton>
          }
        >
          {t(isFiltered ? 'catalog.emptyText' : 'catalog.nothingText')}
        </Empty>
      )}
      {page.data !== null && services.length === 0 && isFiltered && <Categories />}
      <ul class="cards" aria-busy={page.loading}>
        {services.map((service) => (
          <li key={service.id}>
            <ServiceCard service={service} />
          </li>
        ))}
      </ul>
      {more.failure !== null && <SearchFailure failure={more.failure} />}
      {more.cursor !== null && (
        <div class="more">
          {/* A link, so that those without scripts and crawlers get on too. */}
          <LinkButton
            href={withQuery(address, { cursor: more.cursor })}
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

const CardsWaiting = () => (
  <div class="cards">
    {Array.from({ length: CARDS_WAITING }, (_, i) => (
      <div key={i} class="card service-card">
        <Skeleton lines={5} />
      </div>
    ))}
  </div>
);

/** All categories that have services, for somebody who found none. */
function Categories() {
  const { t, language } = useI18n();
  const href = useHref();
  const { data } = useResource(
    'categories',
    (signal) => dataOf(api.value.GET('/api/v1/discover', { params: { query: { limit: 1, fields: 'id' } }, signal })),
    useFirstData<Found>('categories'),
  );
  if (data === null || data.categories.length === 0) return null;
  return (
    <nav class="row categories" aria-label={t('catalog.allCategories')}>
      {data.categories.slice(0, MOST_CATEGORIES).map(({ category, services }) => (
        <a key={category} class="pill pill-check break" href={href(`/?category=${encodeURIComponent(category)}`)}>
          {category} <span class="faint number">{count(services, language)}</span>
        </a>
      ))}
    </nav>
  );
}

/** The pages after the first one. They are dropped when the search changes. */
function useMore(first: Found | null, search: Search, language: string) {
  const [state, setState] = useState<{ of: Found | null; services: Found['services']; cursor: string | null }>({
    of: null,
    services: [],
    cursor: null,
  });
  const [failed, setFailed] = useState<{ of: Found | null; failure: unknown }>({ of: null, failure: null });
  const loading = useRef(false);
  // Results of an older search are never shown below a newer one.
  const isCurrent = state.of === first;
  const cursor = isCurrent ? state.cursor : (first?.next_cursor ?? null);
  const load = async (): Promise<void> => {
    if (loading.current || cursor === null) return;
    loading.current = true;
    try {
      const query = { ...search, lang: language, limit: PAGE_SIZE, cursor };
      const next = await dataOf(api.value.GET('/api/v1/discover', { params: { query } }));
      setFailed({ of: null, failure: null });
      setState((before) => ({
        of: first,
        services: [...(before.of === first ? before.services : []), ...next.services],
        cursor: next.next_cursor ?? null,
      }));
    } catch (error) {
      setFailed({ of: first, failure: error });
    } finally {
      loading.current = false;
    }
  };
  const failure = failed.of === first ? failed.failure : null;
  return { services: isCurrent ? state.services : [], cursor, failure, load };
}
