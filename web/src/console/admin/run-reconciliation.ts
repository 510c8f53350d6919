import { ApiFailure, dataOf, type Schemas } from '../../api/client.ts';
import { api } from '../../session.ts';

export type Reconciliation = Schemas['Reconciliation'];

/** A long comparison outlives the 5 s that a request may take: its outcome is asked for this often, this many times. */
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
    // By the clock of the gateway: the comparison is over once all shards are younger than this.
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

/** The comparison goes on after a 503. @param before  when the last one was */
async function whenDone(before: string | null, failure: ApiFailure): Promise<Reconciliation> {
  for (let questions = 0; questions < MAX_QUESTIONS; questions++) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    const page = await dataOf(api.value.GET('/api/v1/admin/reconciliation'));
    if (page.checked_at !== null && page.checked_at !== before) return page;
  }
  throw failure;
}
