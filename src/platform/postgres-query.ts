import type { Sql } from './postgres-client.ts';

/** Carries a query out: `build` makes it for the connection it runs on. */
export type Runner = <T>(build: (client: Sql) => PromiseLike<T>) => Promise<T>;

/**
 * A query, or a part of one, that is bound to a connection only when somebody waits for it. Written into another query's
 * template it becomes part of that.
 */
export class LazyQuery implements PromiseLike<unknown> {
  readonly #runner: Runner;
  readonly #build: (client: Sql) => PromiseLike<unknown>;
  #running: Promise<unknown> | null = null;

  constructor(runner: Runner, build: (client: Sql) => PromiseLike<unknown>) {
    this.#runner = runner;
    this.#build = build;
  }

  /** The same query as the client's own object. */
  on(client: Sql): PromiseLike<unknown> {
    return this.#build(client);
  }

  // biome-ignore lint/suspicious/noThenProperty: it is awaited in place of the client's own query
  then<A = unknown, B = never>(
    onDone?: ((value: unknown) => A | PromiseLike<A>) | null,
    onFailed?: ((reason: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    this.#running ??= this.#runner(this.#build);
    return this.#running.then(onDone, onFailed);
  }

  catch<B>(onFailed: (reason: unknown) => B): Promise<unknown> {
    return this.then((value) => value, onFailed);
  }

  finally(onEnd: () => void): Promise<unknown> {
    return this.then((value) => value).finally(onEnd);
  }
}

/** A value of a template as the client takes it. */
function bind(value: unknown, client: Sql): unknown {
  if (value instanceof LazyQuery) return value.on(client);
  if (Array.isArray(value) && value[0] instanceof LazyQuery) return value.map((item) => bind(item, client));
  return value;
}

type Call = (...args: unknown[]) => PromiseLike<unknown>;

/**
 * A function like postgres.js's: a template tag that makes queries, or a helper for names and lists of columns.
 *
 * @param helpers a client that is never connected: helpers are the same for all
 */
export function tag(runner: Runner, helpers: Sql): (first: unknown, ...rest: unknown[]) => unknown {
  return (first, ...rest) => {
    if (!Array.isArray(first) || !('raw' in first)) return (helpers as unknown as Call)(first, ...rest);
    return new LazyQuery(runner, (client) =>
      (client as unknown as Call)(first, ...rest.map((value) => bind(value, client))),
    );
  };
}

/** Like postgres.js's `unsafe`: text with `$1` parameters, or several statements without. */
export function unsafe(runner: Runner): (text: string, parameters?: unknown[], options?: object) => LazyQuery {
  return (text, ...rest) => new LazyQuery(runner, (client) => (client.unsafe as unknown as Call)(text, ...rest));
}
