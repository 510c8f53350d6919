import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { api } from '../../session.ts';

export type Reconciliation = Schemas['Reconciliation'];

/** A long comparison takes more than the 5 s of a request: its outcome is then requested at this interval, this many times. */
const ASK_EVERY_MS = 5_000;
const MAX_QUESTIONS = 24;

/** Compares now. @param tell called every second with a sentence about the progress */
export async function runNow(tell: (progress: string) => void): Promise<Reconciliation> {
  const began = Date.now();
  const seconds = (): number => Math.round((Date.now() - began) / 1_000);
  const say = (): void => tell(`Comparing all wallets with the books. ${seconds()} s so far.`);
  say();
  const timer = setInterval(say, 1_000);
  try {
    // By the gateway's clock: the comparison has ended once the reports of all shards are younger than this.
    const before = await dataOf(api.value.GET('/api/v1/admin/reconciliation'));
    try {
      return await dataOf(api.value.POST('/api/v1/admin/reconciliation'));
    } catch (failure) {
      if (!(failure instanceof ApiFailure) || failure.status !== 503) throw failure;
      return await whenDone(before.checked_at, failure);
    }
  } finally {
    clearInterval(timer);
  }
}

/** The comparison goes on after a 503. @param before when the last comparison ended */
async function whenDone(before: string | null, failure: ApiFailure): Promise<Reconciliation> {
  for (let questions = 0; questions < MAX_QUESTIONS; questions++) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    const page = await dataOf(api.value.GET('/api/v1/admin/reconciliation'));
    if (page.checked_at !== null && page.checked_at !== before) return page;
  }
  throw failure;
}
