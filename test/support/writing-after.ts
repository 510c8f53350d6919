import type { Sql } from '../../src/platform/postgres.ts';

/**
 * The database as somebody sees it who is always too late: before each statement that changes listings, something else happens.
 *
 * @param first  what happens before
 */
export function writingAfter(sql: Sql, first: () => Promise<unknown>): Sql {
  const tag = (strings: TemplateStringsArray, ...values: never[]) => {
    const isWrite = strings.join('').includes('UPDATE services');
    return isWrite ? first().then(() => sql(strings, ...values)) : sql(strings, ...values);
  };
  return Object.assign(tag, sql) as Sql;
}
