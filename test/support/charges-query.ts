import { readFileSync } from 'node:fs';

/** The query of docs/guarantees.md by which operators compare what callers were charged with the journal. */
export function readChargesQuery(): string {
  const page = readFileSync(new URL('../../docs/guarantees.md', import.meta.url), 'utf8');
  const query = /^```sql\n([^`]+)^```$/m.exec(page)?.[1];
  if (query === undefined) throw new Error('docs/guarantees.md has no query');
  return query;
}
