import { readFileSync } from 'node:fs';

/** The queries of docs/guarantees.md with which operators check the books, in the order of the page. Each returns what is wrong. */
export function readBooksQueries(): { readonly charges: string; readonly balances: string; readonly journal: string } {
  const page = readFileSync(new URL('../../docs/guarantees.md', import.meta.url), 'utf8');
  const [charges, balances, journal, ...more] = Array.from(
    page.matchAll(/^```sql\n([^`]+)^```$/gm),
    ([, query]) => query,
  );
  if (charges === undefined || balances === undefined || journal === undefined || more.length > 0) {
    throw new Error('docs/guarantees.md must have these three queries');
  }
  return { charges, balances, journal };
}
