import { useEffect, useRef, useState } from 'preact/hooks';
import type { Schemas } from '../api/client.ts';
import { Button, Check, Select } from '../design/index.ts';
import { money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { usePlace, withQuery } from '../place.tsx';

/** How long to wait after a key is pressed: a search takes a token of the visitor's sixty a minute. */
const TYPING_MS = 250;
const QUALITIES = ['60', '75', '90'] as const;
const PRICES = ['0.001', '0.01', '0.1', '1'] as const;

/** The search. It works as a form without scripts, and as one types with them. */
export function Filters({ categories }: { readonly categories: Schemas['FoundServices']['categories'] }) {
  const { t, language } = useI18n();
  const place = usePlace();
  const chosen = (name: string): string => place.query.get(name) ?? '';
  const choose = (name: string, value: string): void =>
    place.go(withQuery(place, { [name]: value, cursor: null }), true);
  const words = useTypedWords(chosen('q'), (value) => choose('q', value));
  const names = [...new Set([...categories.map(({ category }) => category), chosen('category')])].filter(
    (name) => name !== '',
  );
  const counts = new Map(categories.map(({ category, services }) => [category, services]));
  return (
    <search>
      <form
        class="filters"
        action="/"
        method="get"
        onSubmit={(event) => {
          event.preventDefault();
          words.now();
        }}
      >
        {place.query.has('lang') && <input type="hidden" name="lang" value={chosen('lang')} />}
        <div class="search">
          <label class="visually-hidden" for="q">
            {t('catalog.search')}
          </label>
          <input
            id="q"
            class="input search-input"
            type="search"
            name="q"
            maxLength={200}
            autocomplete="off"
            placeholder={t('catalog.searchHint')}
            value={words.text}
            onInput={(event) => words.type(event.currentTarget.value)}
          />
          <Button kind="primary" type="submit">
            {t('catalog.apply')}
          </Button>
        </div>
        <div class="filter-row">
          <Select
            label={t('catalog.category')}
            name="category"
            value={chosen('category')}
            onChange={(event) => choose('category', event.currentTarget.value)}
            options={[
              ['', t('catalog.allCategories')],
              ...names.map((name) => [name, counts.has(name) ? `${name} (${counts.get(name)})` : name] as const),
            ]}
          />
          <Select
            label={t('catalog.minQuality')}
            name="min_quality"
            value={chosen('min_quality')}
            onChange={(event) => choose('min_quality', event.currentTarget.value)}
            options={[['', t('catalog.anyQuality')], ...QUALITIES.map((quality) => [quality, quality] as const)]}
          />
          <Select
            label={t('catalog.maxPrice')}
            name="max_price"
            value={chosen('max_price')}
            onChange={(event) => choose('max_price', event.currentTarget.value)}
            options={[
              ['', t('catalog.anyPrice')],
              ...PRICES.map((price) => [price, money(Number(price), language)] as const),
            ]}
          />
          <Select
            label={t('catalog.sort')}
            name="sort"
            value={chosen('sort')}
            onChange={(event) => choose('sort', event.currentTarget.value)}
            options={[
              ['', chosen('q') === '' ? t('catalog.sortQuality') : t('catalog.sortRelevance')],
              ...(chosen('q') === '' ? [] : [['quality', t('catalog.sortQuality')] as const]),
              ['price', t('catalog.sortPrice')],
              ['name', t('catalog.sortName')],
              ['newest', t('catalog.sortNewest')],
            ]}
          />
          <Check
            label={t('catalog.free')}
            name="free"
            value="true"
            checked={chosen('free') === 'true'}
            onChange={(event) => choose('free', event.currentTarget.checked ? 'true' : '')}
          />
        </div>
      </form>
    </search>
  );
}

/** What is being typed, and the search that follows it after a pause. */
function useTypedWords(searched: string, search: (words: string) => void) {
  const [text, setText] = useState(searched);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  // The address changes by itself when the visitor goes back.
  useEffect(() => {
    if (timer.current === null) setText(searched);
  }, [searched]);
  const stop = (): void => {
    if (timer.current !== null) clearTimeout(timer.current);
    timer.current = null;
  };
  useEffect(() => stop, []);
  return {
    text,
    type: (value: string): void => {
      setText(value);
      stop();
      timer.current = setTimeout(() => {
        timer.current = null;
        search(value.trim());
      }, TYPING_MS);
    },
    now: (): void => {
      stop();
      search(text.trim());
    },
  };
}
