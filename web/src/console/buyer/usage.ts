import { dataOf, type Schemas } from '../../api/client.ts';
import { api } from '../../session.ts';

export type Usage = Schemas['Usage'];
export type Call = Schemas['UsageRecord'];
type UsageQuery = {
  readonly from?: string;
  readonly to?: string;
  readonly service_id?: string;
  readonly outcome?: 'completed' | 'refunded';
  readonly cursor?: string;
  readonly limit?: number;
};

/** Calls of this key and their sums. */
export const usageOf = (query: UsageQuery, signal: AbortSignal): Promise<Usage> =>
  // The same address also answers in CSV, but not to this question.
  dataOf(api.value.GET('/api/v1/usage/me', { params: { query }, signal })) as Promise<Usage>;

/** The same calls as a file. */
export const usageFile = (query: UsageQuery) =>
  api.value.GET('/api/v1/usage/me', { params: { query }, headers: { Accept: 'text/csv' }, parseAs: 'blob' });
