import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { api } from '../../session.ts';
import { whenCompared } from './when-compared.ts';

export type Reconciliation = Schemas['Reconciliation'];

/** Compares now. @param tell  gets one sentence about what is under way, each second */
export async function runNow(tell: (progress: string) => void): Promise<Reconciliation> {
  const began = Date.now();
  const seconds = (): number => Math.round((Date.now() - began) / 1_000);
  const say = (): void => tell(`Comparing all wallets with Postgres. ${seconds()} s so far.`);
  say();
  const timer = setInterval(say, 1_000);
  try {
    const answer = await dataOf(api.value.POST('/api/v1/admin/reconciliation'));
    if ('totals' in answer) return answer;
    const page = await whenCompared(answer.checked_at, () => dataOf(api.value.GET('/api/v1/admin/reconciliation')));
    if (page !== null) return page;
    const message = 'The comparison has not ended within two minutes. This page will show when it has.';
    throw new ApiFailure('unavailable', message, 202, null);
  } finally {
    clearInterval(timer);
  }
}
