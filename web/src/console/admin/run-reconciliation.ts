import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { api } from '../../session.ts';

export type Reconciliation = Schemas['Reconciliation'];

/** The outcome of a long comparison is requested at this interval, this many times. */
const ASK_EVERY_MS = 5_000;
const MAX_QUESTIONS = 24;

/** Compares now. @param tell  gets one sentence about what is under way, each second */
export async function runNow(tell: (progress: string) => void): Promise<Reconciliation> {
  const began = Date.now();
  const seconds = (): number => Math.round((Date.now() - began) / 1_000);
  const say = (): void => tell(`Comparing all wallets with Postgres. ${seconds()} s so far.`);
  say();
  const timer = setInterval(say, 1_000);
  try {
    const answer = await dataOf(api.value.POST('/api/v1/admin/reconciliation'));
    return 'totals' in answer ? answer : await whenDone(answer.checked_at);
  } finally {
    clearInterval(timer);
  }
}

/** @param before  when the last comparison was: this one has ended once the reports of all shards are younger */
async function whenDone(before: string | null): Promise<Reconciliation> {
  for (let questions = 0; questions < MAX_QUESTIONS; questions++) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    const page = await dataOf(api.value.GET('/api/v1/admin/reconciliation'));
    if (page.checked_at !== null && page.checked_at !== before) return page;
  }
  const message = 'The comparison has not ended within two minutes. This page will show when it has.';
  throw new ApiFailure('unavailable', message, 202, null);
}
