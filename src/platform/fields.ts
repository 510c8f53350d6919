import { microsToUsd } from './money.ts';
import { type JsonSchema, orNull, TIME, usd } from './schemas.ts';

// A resource is described by a table with one row for each field that the API shows. The code that reads, shows and documents the
// resource is generated from the table at start, so a new field is a new row.

/**
 * Who may see a field of a record, provided that they may see the record: anyone, only the account that the record belongs to, or
 * only the other party to it. Admins see everything. The table of each resource defines its owner and its counterpart.
 */
export type Audience = 'anyone' | 'owner' | 'counterpart' | 'admin';

/** The kind of value that a field has: its schema, and how the value in a row becomes the one in JSON. */
type Kind<InRow, InJson = InRow> = { readonly schema: JsonSchema; readonly json: (value: InRow) => InJson };

type Field = Kind<never, unknown> & {
  readonly audience: Audience;
  /** Absent: examples of records lack this field. */
  readonly example?: unknown;
  /** The SQL of its value. Absent: the code that writes the record knows the value. */
  readonly column?: string;
  /** A record lacks this field if Postgres has NULL. */
  readonly isOptional?: boolean;
};

/** Fields by their names in JSON, in the order in which records and CSV files have them. */
export type Fields = Readonly<Record<string, Field>>;

/** A value that is the same in JSON and in the row. */
export const plain = <T>(schema: JsonSchema): Kind<T> => ({ schema, json: (value) => value });
/** An amount: micro-USD in the row, US dollars in JSON. */
export const money = (description: string): Kind<number> => ({ schema: usd(description), json: microsToUsd });
/** A value that a record has only if there is something to say. */
export const optional = <InRow, InJson>({ schema, json }: Kind<InRow, InJson>) => ({
  schema,
  json: (value: InRow | null): InJson | undefined => (value === null ? undefined : json(value)),
  isOptional: true as const,
});
export const time = (schema = TIME): Kind<Date, string> => ({ schema, json: (value) => value.toISOString() });
export const timeOrNull = (schema = TIME): Kind<Date | null, string | null> => ({
  schema: orNull(schema),
  json: (value) => value?.toISOString() ?? null,
});

/** All values of a record before they are written: each under the name of its field, in the form of Postgres. */
export type Values<F extends Fields> = { readonly [Name in keyof F]: Parameters<F[Name]['json']>[0] };
/** The names of the fields that have a column. */
type Stored<F extends Fields> = {
  [Name in keyof F]: F[Name] extends { readonly column: string } ? Name : never;
}[keyof F];
/** What `selectList` reads. */
export type Row<F extends Fields> = Pick<Values<F>, Stored<F>>;

type Seen<F extends Fields, By extends Audience> = {
  [Name in keyof F]: By extends 'admin' ? Name : F[Name]['audience'] extends 'anyone' | By ? Name : never;
}[keyof F];

/** The fields of a record that one audience sees in one response. */
type View<F extends Fields, Name extends keyof F> = {
  readonly names: readonly Name[];
  readonly schemas: Readonly<Record<Name, JsonSchema>>;
  /** The fields that a record may lack. */
  readonly optional: readonly Name[];
  readonly example: { readonly [N in Name]: ReturnType<F[N]['json']> };
  readonly json: (values: Pick<Values<F>, Name>) => { readonly [N in Name]: ReturnType<F[N]['json']> };
};

/** The SQL of all stored fields for a SELECT. @param without fields that this query does not need */
export const selectList = (fields: Fields, without: readonly string[] = []): string =>
  Object.entries(fields)
    .flatMap(([name, { column }]) => (column === undefined || without.includes(name) ? [] : `${column} AS ${name}`))
    .join(', ');

/**
 * @param by       `admin` sees every field, another audience its own fields and those for anyone
 * @param without fields that the audience may see, but that this response leaves out
 */
export function view<F extends Fields, By extends Audience, Without extends keyof F = never>(
  fields: F,
  by: By,
  without: readonly Without[] = [],
): View<F, Exclude<Seen<F, By>, Without>> {
  type Name = Exclude<Seen<F, By>, Without>;
  const shown = Object.entries(fields).filter(
    ([name, { audience }]) =>
      (by === 'admin' || audience === 'anyone' || audience === by) && !without.some((hidden) => hidden === name),
  );
  const of = (pick: (field: Field) => unknown) =>
    Object.fromEntries(shown.map(([name, field]) => [name, pick(field)]).filter(([, value]) => value !== undefined));
  const made = {
    names: shown.map(([name]) => name),
    schemas: of(({ schema }) => schema),
    optional: shown.flatMap(([name, { isOptional }]) => (isOptional ? [name] : [])),
    example: of(({ example }) => example),
    json: (values: Readonly<Record<string, never>>) => {
      const written: Record<string, unknown> = {};
      for (const [name, { json }] of shown) {
        const value = json(values[name] as never);
        if (value !== undefined) written[name] = value;
      }
      return written;
    },
  };
  // The compiler cannot see that the filter above is `Seen`. test/platform/fields.test.ts compares them.
  return made as unknown as View<F, Name>;
}
