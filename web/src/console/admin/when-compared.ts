/** The outcome of a long comparison is requested at this interval, this many times. */
const ASK_EVERY_MS = 5_000;
const MAX_QUESTIONS = 24;

type Compared = { readonly checked_at: string | null };

/**
 * Asks until a comparison that goes on has ended. @returns null: it has not, within two minutes
 *
 * @param before  when the last comparison was: this one has ended once the reports of all shards are younger
 */
export async function whenCompared<Page extends Compared>(
  before: string | null,
  ask: () => Promise<Page>,
): Promise<Page | null> {
  for (let questions = 0; questions < MAX_QUESTIONS; questions++) {
    await new Promise((resolve) => setTimeout(resolve, ASK_EVERY_MS));
    const page = await ask();
    if (page.checked_at !== before) return page;
  }
  return null;
}
