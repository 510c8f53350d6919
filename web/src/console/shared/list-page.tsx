import type { ComponentChildren } from 'preact';
import { useEffect, useId, useRef, useState } from 'preact/hooks';
import { type Address, useAddress, withQuery } from '../../address.tsx';
import { Button, Empty, FailureNote, LinkButton, SkeletonRows } from '../../design/index.ts';
import { Card, type Column, Select, Table, TextInput } from '../../design/more.ts';
import { useResource } from '../../resource.ts';
import { session } from '../../session.ts';
import { type AskFile, CsvExport } from './csv-export.tsx';
import { inOrder, rangeOf } from './days.ts';

/** One field above a list. Its value is the parameter `name` of the address, and of the request to the API. */
export type Filter = {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** `date` for days in UTC. */
  readonly type?: 'text' | 'date' | 'search';
  /** It chooses another list, so an empty one is not for want of a match. */
  readonly isView?: true;
  /** A choice: value and text; the first is the default and has the value ''. */
  readonly options?: readonly (readonly [value: string, text: string])[];
};

/** The filters that are set, with days as the API takes them, and `cursor` after the first page. */
type Query = Readonly<Record<string, string>>;

export type Rows<Row> = {
  readonly rows: readonly Row[];
  readonly next: string | null;
  /** The first day (YYYY-MM-DD, UTC) whose calls are kept; absent: no call was dropped. */
  readonly since?: string | undefined;
  /** What they and those of other pages are together, above the rows. */
  readonly sums?: ComponentChildren;
};

/**
 * A list that can be filtered and paged. Filters and cursor are in the address, so that every view can be shared and going back
 * works. There is never a secret in them.
 */
export function ListPage<Row>({
  caption,
  filters = [],
  ask,
  columns,
  keyOf,
  empty,
  file,
  version = 0,
}: {
  /** What it lists, for screen readers. */
  readonly caption: string;
  readonly filters?: readonly Filter[];
  readonly ask: (query: Query, signal: AbortSignal) => Promise<Rows<Row>>;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** Shown if the list is empty without filters: what to do next. */
  readonly empty: ComponentChildren;
  /** The same list as CSV: the name of the file without its extension, and a request with `Accept: text/csv`. */
  readonly file?: { readonly name: string; readonly ask: (query: Query) => ReturnType<AskFile> };
  /** A different number makes it ask again, because something was changed. */
  readonly version?: number;
}) {
  const address = useAddress();
  const query = queryOf(address.query, [...filters.map(({ name }) => name), 'cursor']);
  const key = `${session.value?.me.key_id} ${address.path} ${JSON.stringify(query)} ${version}`;
  const page = useResource(key, async (signal) => ({ ...(await ask({ ...query, ...rangeOf(query) }, signal)), key }));
  // Once this request has failed, rows of another request are not shown.
  const data = page.failure !== null && page.data?.key !== key ? null : page.data;
  // Sums by tag are dropped with the calls, because tags may name somebody.
  const hasTags = filters.some(({ name }) => name === 'tag');
  const isFiltered = filters.some(({ name, isView }) => isView === undefined && query[name] !== undefined);
  return (
    <Card flush>
      {(filters.length > 0 || file !== undefined) && (
        <div class="list-head">
          <FilterForm filters={filters} query={query}>
            {file !== undefined && <ListFile {...file} query={query} />}
          </FilterForm>
        </div>
      )}
      {page.failure !== null && (
        <div class="card-note">
          <FailureNote failure={page.failure} retry={page.reload} />
        </div>
      )}
      {data === null && page.failure === null && <SkeletonRows />}
      {data?.sums !== undefined && <p class="card-note list-sums small soft number">{data.sums}</p>}
      {data !== null && data.rows.length > 0 && (
        <div aria-busy={page.loading}>
          <Table caption={caption} columns={columns} rows={data.rows} keyOf={keyOf} />
        </div>
      )}
      {data !== null &&
        data.rows.length === 0 &&
        (isFiltered || query.cursor !== undefined ? (
          <Empty
            title="Nothing matches"
            action={<LinkButton href={withoutFilters(address, filters)}>Show all</LinkButton>}
          >
            Nothing in this list fits the filters.
          </Empty>
        ) : (
          empty
        ))}
      {filters.some(({ type }) => type === 'date') && new Date().getTimezoneOffset() !== 0 && (
        <p class="card-note small soft">Times are of your time zone; days of the filters are UTC.</p>
      )}
      {data?.since !== undefined && data.next === null && (
        <p class="card-note small soft">
          Single calls are kept from {data.since} (UTC) on{hasTags && ', and so are sums by tag'}.{' '}
          {hasTags ? 'Other sums' : 'Sums'} and balances are of all calls, older ones too.
        </p>
      )}
      {(data !== null || page.failure !== null) && (query.cursor !== undefined || (data?.next ?? null) !== null) && (
        <nav class="card-foot list-foot" aria-label={`Pages of ${caption}`}>
          {query.cursor !== undefined && (
            <LinkButton small href={withQuery(address, { cursor: null })}>
              First page
            </LinkButton>
          )}
          {data !== null && data.next !== null && (
            <LinkButton small href={withQuery(address, { cursor: data.next })}>
              Next page
            </LinkButton>
          )}
        </nav>
      )}
    </Card>
  );
}

/** All parts of a file have the same filters; its cursor is that of its part. */
function ListFile({
  name,
  ask,
  query,
}: NonNullable<Parameters<typeof ListPage>[0]['file']> & { readonly query: Query }) {
  const { cursor: _, ...filters } = query;
  return (
    <CsvExport
      name={name}
      of={JSON.stringify(filters)}
      ask={(cursor) => ask({ ...filters, ...rangeOf(filters), ...(cursor === undefined ? {} : { cursor }) })}
    />
  );
}

/** The parameters of an address that are set, of those with these names. */
export const queryOf = (query: URLSearchParams, names: readonly string[]): Query =>
  Object.fromEntries(
    names.flatMap((name) => {
      const value = query.get(name) ?? '';
      return value === '' ? [] : [[name, value] as const];
    }),
  );

/** The address with all its other parameters. */
const withoutFilters = (address: Address, filters: readonly Filter[]): string =>
  withQuery(address, Object.fromEntries([...filters.map(({ name }) => name), 'cursor'].map((name) => [name, null])));

/**
 * Fields that change the address; on a phone they are folded.
 *
 * @param query the present values
 * @param children beside the fields
 */
export function FilterForm({
  filters,
  query,
  children,
}: {
  readonly filters: readonly Filter[];
  readonly query: Query;
  readonly children?: ComponentChildren;
}) {
  const address = useAddress();
  const form = useRef<HTMLFormElement>(null);
  const toggle = useRef<HTMLButtonElement>(null);
  const fields = useId();
  const [isOpen, setOpen] = useState(false);
  // The fields follow the address when the reader goes back.
  useEffect(() => {
    for (const { name } of filters) {
      const field = form.current?.elements.namedItem(name);
      if (field instanceof HTMLInputElement || field instanceof HTMLSelectElement) field.value = query[name] ?? '';
    }
  }, [JSON.stringify(query)]);
  const on = filters.filter(({ name }) => query[name] !== undefined).length;
  const apply = (form: HTMLFormElement): void => {
    const values = new FormData(form);
    const changes = filters.map(({ name }) => [name, String(values.get(name) ?? '').trim()] as const);
    address.go(withQuery(address, { ...inOrder(Object.fromEntries(changes)), cursor: null }));
  };
  return (
    <form
      ref={form}
      class={isOpen ? 'list-filters is-open' : 'list-filters'}
      onSubmit={(event) => {
        event.preventDefault();
        apply(event.currentTarget);
        // On a phone the list would stay below the fields, and the focus on nothing.
        setOpen(false);
        toggle.current?.focus();
      }}
    >
      {filters.length > 0 && (
        <button
          ref={toggle}
          type="button"
          class="button filters-toggle"
          aria-expanded={isOpen}
          aria-controls={fields}
          onClick={() => setOpen(!isOpen)}
        >
          Filters
          {on > 0 && <span class="filters-on">{on}</span>}
        </button>
      )}
      <div class="list-fields" id={fields}>
        {filters.map(({ name, label, options, placeholder, type = 'text' }) =>
          options === undefined ? (
            <TextInput
              key={name}
              label={label}
              name={name}
              type={type}
              placeholder={placeholder ?? ''}
              defaultValue={query[name] ?? ''}
            />
          ) : (
            <Select
              key={name}
              label={label}
              name={name}
              options={options}
              value={query[name] ?? ''}
              onChange={(event) => apply(event.currentTarget.form as HTMLFormElement)}
            />
          ),
        )}
      </div>
      <div class="list-acts">
        {filters.length > 0 && <Button type="submit">Apply</Button>}
        {on > 0 && (
          <LinkButton kind="quiet" small href={withoutFilters(address, filters)}>
            Clear
          </LinkButton>
        )}
        {children}
      </div>
    </form>
  );
}
