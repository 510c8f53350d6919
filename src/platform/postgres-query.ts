import type postgres from 'postgres';

export type Row = postgres.Row;
/** The rows of a result, with the statement's `count` (number of rows) and `command` ('SELECT', 'COMMIT', …). */
export type Rows<T extends readonly object[]> = postgres.RowList<T>;

type Element = string | number | boolean | Date | null;
export type Value = Element | readonly Element[];
/** What `${…}` of a template may contain: a value, or a query whose text becomes part of the query. */
type Part = Value | Query<unknown> | readonly Query<unknown>[];

/** `isPlannedAnew`: the statement is not prepared, so Postgres plans each execution for its actual values. */
export type RunOptions = { readonly isPlannedAnew?: boolean };

/** Runs text with `$1` parameters. Text without parameters may hold several statements. */
export type Run = <T extends object = Row>(
  text: string,
  parameters?: readonly Value[],
  options?: RunOptions,
) => Promise<Rows<T[]>>;

type Tag = <T extends readonly object[] = Row[]>(
  texts: TemplateStringsArray,
  ...parts: readonly Part[]
) => Query<Rows<T[number][]>>;

/** A template tag that makes queries. They run on one connection, or on any connection of a pool. */
export type Tx = Tag & {
  readonly unsafe: Run;
  /**
   * A tag for queries of `calls`, which has a partition for each day. At the sixth execution of a prepared statement, Postgres
   * makes a generic plan: it covers all partitions, which takes 60 ms and 4 000 locks with a thousand of them. Not preparing the
   * statement costs a round trip and less than a millisecond.
   */
  readonly anew: Tag;
  /** SQL text of our own, such as a shared condition, as a part of a query. */
  readonly text: (text: string) => Query<unknown>;
};

/**
 * @param run carries out the queries
 *
 * Tested by test/platform/postgres.test.ts, and by every test that asks Postgres.
 */
export function templateTag(run: Run): Tx {
  const tag = <T extends readonly object[]>(texts: TemplateStringsArray, ...parts: readonly Part[]) =>
    new Query(run<T[number]>, texts, parts);
  const anew = <T extends readonly object[]>(texts: TemplateStringsArray, ...parts: readonly Part[]) =>
    new Query((text, parameters) => run<T[number]>(text, parameters, { isPlannedAnew: true }), texts, parts);
  return Object.assign(tag, { unsafe: run, anew, text: (text: string) => new Query<unknown>(run, [text], []) });
}

/** A query, or a part of another query. It runs when it is awaited; in another query's template it becomes part of that query. */
class Query<Result> implements Promise<Result> {
  readonly [Symbol.toStringTag] = 'Query';
  readonly #run: (text: string, parameters: Value[]) => Promise<Result>;
  readonly #texts: readonly string[];
  readonly #parts: readonly Part[];
  #result: Promise<Result> | null = null;

  constructor(
    run: (text: string, parameters: Value[]) => Promise<Result>,
    texts: readonly string[],
    parts: readonly Part[],
  ) {
    this.#run = run;
    this.#texts = texts;
    this.#parts = parts;
  }

  /** Adds the query's values to `parameters`. @returns the query's text, with `$1`, `$2`, … instead of the values */
  write(parameters: Value[]): string {
    const write = (part: Part): string => {
      if (part instanceof Query) return part.write(parameters);
      if (isListOfQueries(part)) return part.map(write).join(' ');
      return `$${parameters.push(part)}`;
    };
    return String.raw({ raw: this.#texts }, ...this.#parts.map(write));
  }

  #start(): Promise<Result> {
    const parameters: Value[] = [];
    this.#result ??= this.#run(this.write(parameters), parameters);
    return this.#result;
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited instead of the client's own query
  then: Promise<Result>['then'] = (...handlers) => this.#start().then(...handlers);
  catch: Promise<Result>['catch'] = (onFailed) => this.#start().catch(onFailed);
  finally: Promise<Result>['finally'] = (onEnd) => this.#start().finally(onEnd);
}

const isListOfQueries = (part: Part): part is readonly Query<unknown>[] =>
  Array.isArray(part) && part[0] instanceof Query;
