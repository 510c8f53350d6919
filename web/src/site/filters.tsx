import { useEffect, useRef, useState } from 'preact/hooks';
import { useAddress, withQuery } from '../address.tsx';
import type { Schemas } from '../api/client.ts';
import { Button } from '../design/index.ts';
import { money } from '../i18n/format.ts';
import { useI18n } from '../i18n/i18n.tsx';
import { FILTERS } from './search.ts';

/** How long to wait after a keystroke: a search takes one of the visitor's sixty tokens a minute. */
const TYPING_MS = 250;
const QUALITIES = ['60', '75', '90'] as const;
const PRICES = ['0.001', '0.01', '0.1', '1'] as const;

/** The search. Without scripts it works as a form, with them while one types. */
export function Filters({ categories }: { readonly categories: Schemas['FoundServices']['categories'] }) {
  const { t, language } = useI18n();
  const address = useAddress();
  const [isOpen, setOpen] = useState(false);
  const chosen = (name: string): string => address.query.get(name) ?? '';
  const choose = (name: string, value: string, replace = false): void =>
    address.go(withQuery(address, { [name]: value, cursor: null }), replace);
  // Typing replaces the present entry of the history; otherwise going back would go letter by letter.
  const words = useTypedWords(chosen('q'), (value) => choose('q', value, true));
  const input = useSlashKey();
  const form = useRef<HTMLFormElement>(null);
  // Input from before the scripts ran is a search, too.
  useEffect(() => {
    if (form.current === null) return;
    const data = new FormData(form.current);
    const early = FILTERS.map((name) => [name, String(data.get(name) ?? '').trim()] as const).filter(
      ([name, value]) => value !== chosen(name),
    );
    if (early.length > 0) address.go(withQuery(address, { ...Object.fromEntries(early), cursor: null }), true);
  }, []);
  // Services of one category list only that category: the others must stay selectable.
  const seen = useRef<readonly string[]>([]);
  const present = categories.map(({ category }) => category);
  if (chosen('category') === '' && present.length > 0) seen.current = present;
  const names = [...new Set([...seen.current, ...present, chosen('category')])].filter((name) => name !== '');
  const counts = new Map(categories.map(({ category, services }) => [category, services]));
  const select = { chosen, choose };
  const isOn = (name: string): boolean => chosen(name) !== '';
  const on = FILTERS.filter((name) => name !== 'q' && isOn(name)).length;
  return (
    <search id="services" class="catalog-search">
      <form
        ref={form}
        class="filters"
        action="/"
        method="get"
        onSubmit={(event) => {
          event.preventDefault();
          words.now();
        }}
      >
        {address.query.has('lang') && <input type="hidden" name="lang" value={chosen('lang')} />}
        <div class="search">
          <label class="visually-hidden" for="q">
            {t('catalog.search')}
          </label>
          <div class="search-field">
            <svg class="search-icon" viewBox="0 0 20 20" width="18" height="18" aria-hidden="true">
              <path d="m13.5 13.5 4 4M15 9A6 6 0 1 1 3 9a6 6 0 0 1 12 0Z" />
            </svg>
            <input
              ref={input}
              id="q"
              class="input search-input"
              type="search"
              name="q"
              maxLength={200}
              autocomplete="off"
              enterkeyhint="search"
              aria-keyshortcuts="/"
              placeholder={t('catalog.searchHint')}
              value={words.text}
              onInput={(event) => words.type(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key !== 'Escape') return;
                event.preventDefault();
                if (words.text === '') event.currentTarget.blur();
                else words.clear();
              }}
            />
            <span class="search-key needs-script" aria-hidden="true">
              /
            </span>
          </div>
          <Button kind="primary" type="submit">
            {t('catalog.apply')}
          </Button>
          <button
            type="button"
            class="button filters-toggle needs-script"
            aria-expanded={isOpen}
            aria-controls="filters"
            onClick={() => setOpen(!isOpen)}
          >
            {t('catalog.filters')}
            {on > 0 && <span class="filters-on">{on}</span>}
          </button>
        </div>
        <div id="filters" class={isOpen ? 'filter-row is-open' : 'filter-row'}>
          <Choice
            {...select}
            name="category"
            label={t('catalog.category')}
            any={t('catalog.allCategories')}
            options={names.map((name) => [name, counts.has(name) ? `${name} (${counts.get(name)})` : name])}
          />
          <Choice
            {...select}
            name="min_quality"
            label={t('catalog.minQuality')}
            any={t('catalog.anyQuality')}
            options={QUALITIES.map((quality) => [quality, t('catalog.qualityFrom', { quality })])}
          />
          <Choice
            {...select}
            name="max_price"
            label={t('catalog.maxPrice')}
            any={t('catalog.anyPrice')}
            options={PRICES.map((price) => [price, t('catalog.priceTo', { price: money(Number(price), language) })])}
          />
          <label class={isOn('free') ? 'pill pill-check is-set' : 'pill pill-check'}>
            <input
              type="checkbox"
              name="free"
              value="true"
              checked={chosen('free') === 'true'}
              onChange={(event) => choose('free', event.currentTarget.checked ? 'true' : '')}
            />
            {t('catalog.free')}
          </label>
          <Choice
            {...select}
            name="sort"
            label={t('catalog.sort')}
            any={chosen('q') === '' ? t('catalog.sortQuality') : t('catalog.sortRelevance')}
            options={[
              ...(chosen('q') === '' ? [] : [['quality', t('catalog.sortQuality')] as const]),
              ['price', t('catalog.sortPrice')],
              ['name', t('catalog.sortName')],
              ['newest', t('catalog.sortNewest')],
            ]}
          />
        </div>
      </form>
    </search>
  );
}

/** One filter. Its text when nothing is chosen says what it is for. */
function Choice({
  name,
  label,
  any,
  options,
  chosen,
  choose,
}: {
  readonly name: string;
  readonly label: string;
  readonly any: string;
  readonly options: readonly (readonly [value: string, text: string])[];
  readonly chosen: (name: string) => string;
  readonly choose: (name: string, value: string) => void;
}) {
  const value = chosen(name);
  const isListed = value === '' || options.some(([listed]) => listed === value);
  return (
    <select
      class={`pill pill-${name}${value === '' ? '' : ' is-set'}`}
      name={name}
      aria-label={label}
      value={value}
      onChange={(event) => choose(name, event.currentTarget.value)}
    >
      <option value="">{any}</option>
      {(isListed ? options : [...options, [value, value] as const]).map(([option, text]) => (
        <option key={option} value={option} selected={option === value}>
          {text}
        </option>
      ))}
    </select>
  );
}

/** The key `/` focuses the search, unless somebody types elsewhere. */
function useSlashKey() {
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.target instanceof Element && event.target.closest('input, textarea, select, dialog')) return;
      event.preventDefault();
      input.current?.focus();
      input.current?.select();
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return input;
}

/** The text being typed, and the search that follows it after a pause. */
function useTypedWords(searched: string, search: (words: string) => void) {
  const [text, setText] = useState(searched);
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null);
  // The address changes by itself when the visitor goes back. The space after a searched word is the beginning of the next one.
  useEffect(() => {
    if (timer.current === null) setText((typed) => (typed.trim() === searched ? typed : searched));
  }, [searched]);
  const stop = (): void => {
    if (timer.current !== null) clearTimeout(timer.current);
    timer.current = null;
  };
  useEffect(() => stop, []);
  const now = (value: string): void => {
    stop();
    if (value.trim() !== searched) search(value.trim());
  };
  return {
    text,
    type: (value: string): void => {
      setText(value);
      stop();
      timer.current = setTimeout(() => now(value), TYPING_MS);
    },
    now: () => now(text),
    clear: (): void => {
      setText('');
      now('');
    },
  };
}
