import { readFileSync } from 'node:fs';

type BooksQueries = {
  readonly charges: string;
  readonly refunds: string;
  readonly balances: string;
  readonly journal: string;
};

/** The queries of docs/guarantees.md with which operators check the books, in the order of the page. Each returns what is wrong. */
export function readBooksQueries(): BooksQueries {
  const page = readFileSync(new URL('../../docs/guarantees.md', import.meta.url), 'utf8');
  const [charges, refunds, balances, journal, ...more] = Array.from(
    page.matchAll(/^```sql\n([^`]+)^```$/gm),
    ([, query]) => query,
  );
  if (
    charges === undefined ||
    refunds === undefined ||
    balances === undefined ||
    journal === undefined ||
    more.length > 0
  ) {
    throw new Error('docs/guarantees.md must have these four queries');
  }
  return { charges, refunds, balances, journal };
}
