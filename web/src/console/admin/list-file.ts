import { api } from '../../session.ts';
import type { AskFile } from '../shared/csv-export.tsx';
import { withIds } from './name-or-id.ts';

type List = 'accounts' | 'audit' | 'calls' | 'credits' | 'debits' | 'payouts' | 'refunds' | 'services';

/** An operators' list as a CSV file, for `ListPage`, with the filters of the page. */
export function listFile(name: List) {
  const ask = async (query: Readonly<Record<string, string>>): ReturnType<AskFile> =>
    api.value.GET(`/api/v1/admin/${name}`, {
      params: { query: await withIds(query, new AbortController().signal) },
      headers: { Accept: 'text/csv' },
      parseAs: 'blob',
    });
  return { name, ask };
}
