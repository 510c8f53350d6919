import { dataOf } from '../../api/client.ts';
import { useResource } from '../../resource.ts';
import { api, session } from '../../session.ts';
import { today } from '../shared/days.ts';

/** The platform's share of a charge in percent, or null while it is not known. */
export function useFeePercent(): number | null {
  const { data } = useResource(`fee ${session.value?.me.key_id}`, (signal) =>
    dataOf(api.value.GET('/api/v1/earnings/me', { params: { query: { from: today() } }, signal })),
  );
  return data?.fee_percent ?? null;
}

/** What a provider earns from a charge in USD: the fee is rounded down to a millionth, as in the ledger. */
export function earnedOf(price: number, feePercent: number): number {
  const micros = Math.round(price * 1e6);
  return (micros - Math.floor((micros * Math.round(feePercent * 100)) / 10_000)) / 1e6;
}
