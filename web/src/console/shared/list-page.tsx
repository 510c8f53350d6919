import type { ComponentChildren } from 'preact';
import {
  Button,
  Card,
  type Column,
  Empty,
  FailureNote,
  LinkButton,
  Select,
  Skeleton,
  Table,
  TextInput,
} from '../../design/index.ts';
import { usePlace, withQuery } from '../../place.tsx';
import { useResource } from '../../resource.ts';
import { session } from '../../session.ts';

/** One field above a list. Its value is the parameter `name` of the address, and of the question to the API. */
export type Filter = {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** `date` for days in UTC. */
  readonly type?: 'text' | 'date' | 'search';
  /** A choice: value and text; the first is the default and has the value ''. */
  readonly options?: readonly (readonly [value: string, text: string])[];
};

export type Rows<Row> = { readonly rows: readonly Row[]; readonly next: string | null };

/**
 * A list that can be filtered and paged. Filters and place stand in the address, so that every view can be shared and going back
 * works. There is never a secret in them.
 */
export function ListPage<Row>({
  caption,
  filters = [],
  ask,
  columns,
  keyOf,
  empty,
  actions,
  version = 0,
}: {
  /** What it lists, for screen readers. */
  readonly caption: string;
  readonly filters?: readonly Filter[];
  /** @param query  the filters that are set, and `cursor` behind the first page */
  readonly ask: (query: Readonly<Record<string, string>>, signal: AbortSignal) => Promise<Rows<Row>>;
  readonly columns: readonly Column<Row>[];
  readonly keyOf: (row: Row) => string;
  /** Shown where there is nothing at all, with no filter set: what to do next. */
  readonly empty: ComponentChildren;
  readonly actions?: ComponentChildren;
  /** Another number asks again: something was changed. */
  readonly version?: number;
}) {
  const place = usePlace();
  const names = [...filters.map(({ name }) => name), 'cursor'];
  const query = Object.fromEntries(
    names.flatMap((name) => {
      const value = place.query.get(name);
      return value === null || value === '' ? [] : [[name, value] as const];
    }),
  );
  const key = `${session.value?.me.key_id} ${place.path} ${JSON.stringify(query)} ${version}`;
  const page = useResource(key, async (signal) => ({ ...(await ask(query, signal)), key }));
  // Rows that answer another question are no answer to this one, once it has failed.
  const data = page.failure !== null && page.data?.key !== key ? null : page.data;
  const all = withQuery(place, Object.fromEntries(names.map((name) => [name, null])));
  const isFiltered = filters.some(({ name }) => query[name] !== undefined);
  return (
    <Card flush>
      {(filters.length > 0 || actions !== undefined) && (
        <div class="list-head">
          <FilterForm filters={filters} query={query} all={isFiltered ? all : null} />
          {actions !== undefined && <div class="row">{actions}</div>}
        </div>
      )}
      {page.failure !== null && (
        <div class="list-note">
          <FailureNote failure={page.failure} retry={page.reload} />
        </div>
      )}
      {data === null && page.failure === null && (
        <div class="list-note">
          <Skeleton lines={5} />
        </div>
      )}
      {data !== null && data.rows.length > 0 && (
        <div aria-busy={page.loading}>
          <Table caption={caption} columns={columns} rows={data.rows} keyOf={keyOf} />
        </div>
      )}
      {data !== null &&
        data.rows.length === 0 &&
        (isFiltered || query.cursor !== undefined ? (
          <Empty title="Nothing matches" action={<LinkButton href={all}>Show all</LinkButton>}>
            Nothing in this list fits the filters.
          </Empty>
        ) : (
          empty
        ))}
      {(query.cursor !== undefined || (data?.next ?? null) !== null) && (
        <nav class="list-foot" aria-label={`Pages of ${caption}`}>
          {query.cursor !== undefined && (
            <LinkButton small href={withQuery(place, { cursor: null })}>
              First page
            </LinkButton>
          )}
          {data !== null && data.next !== null && (
            <LinkButton small href={withQuery(place, { cursor: data.next })}>
              Next page
            </LinkButton>
          )}
        </nav>
      )}
    </Card>
  );
}

function FilterForm({
  filters,
  query,
  all,
}: {
  readonly filters: readonly Filter[];
  readonly query: Readonly<Record<string, string>>;
  /** The address without filters; null if there are none now. */
  readonly all: string | null;
}) {
  const place = usePlace();
  if (filters.length === 0) return <span />;
  const apply = (form: HTMLFormElement): void => {
    const values = new FormData(form);
    const changes = filters.map(({ name }) => [name, String(values.get(name) ?? '').trim()] as const);
    place.go(withQuery(place, { ...Object.fromEntries(changes), cursor: null }));
  };
  return (
    <form
      class="list-filters"
      // The fields follow the address when somebody goes back.
      key={JSON.stringify(query)}
      onSubmit={(event) => {
        event.preventDefault();
        apply(event.currentTarget);
      }}
    >
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
      <Button type="submit">Apply</Button>
      {all !== null && (
        <LinkButton kind="quiet" href={all}>
          Clear
        </LinkButton>
      )}
    </form>
  );
}
