// Messages between the tabs of one browser, so that the gateway is asked once for all of them: an account may ask 30 times a
// minute, and a browser that starts again opens twenty tabs at once. Tested by test/web/sessions.test.ts.

/** A bearer of a session. It is only in the memory of pages, and pages of other origins cannot receive it. */
export type Token = { readonly id: string; readonly text: string; readonly untilMs: number };

type Question = { readonly wanted: string };
/** The answer of each tab. Without a text it has no bearer of the session. `untilMs` is by the tab's own clock. */
type Answer = { readonly id: string; readonly text: string | null; readonly leftMs: number };

const NAME = 'tollgate.bearers';
/** A lock that all tabs with a bearer share. A tab counts its holders, so that a single tab does not wait for answers. */
const TAB = 'tollgate.tab';
/** How long another tab may take to answer. */
const ANSWER_MS = 1_000;
/** A bearer that ends sooner than this is not used: the request might arrive too late. */
export const MIN_LEFT_MS = 60_000;

/** Absent with plain http from another machine: there each tab asks for itself. */
const locks = (): LockManager | undefined => navigator.locks;
const mine = new Map<string, Token>();
let channel: BroadcastChannel | null = null;
let leave: (() => void) | null = null;

/** From now on other tabs get this bearer from here. */
export function share(token: Token): Token {
  mine.set(token.id, token);
  if (locks() === undefined || channel !== null) return token;
  channel = new BroadcastChannel(NAME);
  channel.addEventListener('message', ({ data }: MessageEvent<Question | Answer>) => {
    if (!('wanted' in data)) return;
    const asked = mine.get(data.wanted);
    const leftMs = (asked?.untilMs ?? 0) - performance.now();
    const text = leftMs > MIN_LEFT_MS ? (asked?.text ?? null) : null;
    channel?.postMessage({ id: data.wanted, text, leftMs } satisfies Answer);
  });
  stay();
  // A browser caches a page for its back button only if the page has no lock.
  addEventListener('pagehide', () => leave?.());
  addEventListener('pageshow', ({ persisted }) => persisted && stay());
  return token;
}

function stay(): void {
  void locks()?.request(TAB, { mode: 'shared' }, () => {
    return new Promise<void>((resolve) => {
      leave = () => {
        leave = null;
        resolve();
      };
    });
  });
}

/** Nobody is signed in any more. */
export const shareNothing = (): void => mine.clear();

/** The tabs that have a bearer. If this tab has one, it is among them, and so may be one that has just been closed. */
async function tabsWithBearers(): Promise<readonly (string | undefined)[]> {
  const { held = [] } = (await locks()?.query()) ?? {};
  return held.filter(({ name }) => name === TAB).map(({ clientId }) => clientId);
}

/**
 * A bearer of the session that another tab has.
 *
 * @param refused a bearer that the gateway has refused
 * @param tabs    how many have a bearer; each of them answers
 */
async function ofAnotherTab(id: string, refused: string | null, tabs: number): Promise<Token | null> {
  let silent = tabs;
  if (silent === 0) return null;
  const asking = new BroadcastChannel(NAME);
  return new Promise<Token | null>((resolve) => {
    setTimeout(resolve, ANSWER_MS, null);
    asking.addEventListener('message', ({ data }: MessageEvent<Question | Answer>) => {
      if ('wanted' in data || data.id !== id) return;
      silent--;
      const isGood = data.text !== null && data.text !== refused;
      if (isGood) resolve({ id, text: data.text, untilMs: performance.now() + data.leftMs });
      else if (silent <= 0) resolve(null);
    });
    asking.postMessage({ wanted: id } satisfies Question);
  }).finally(() => asking.close());
}

/** A bearer of the session: from another tab, or from `ask`. */
export async function sharedToken(
  id: string,
  ask: () => Promise<Token>,
  refused: string | null = null,
): Promise<Token> {
  const before = await tabsWithBearers();
  const found = await ofAnotherTab(id, refused, before.length);
  if (found !== null) return share(found);
  return oneAtATime(NAME, async (hasWaited) => {
    // Another tab may have got one: while this tab waited, or between its look at the tabs and its turn.
    const now = await tabsWithBearers();
    const isNew = now.some((tab) => !before.includes(tab));
    const theirs = hasWaited || isNew ? await ofAnotherTab(id, refused, now.length) : null;
    return share(theirs ?? (await ask()));
  });
}

/**
 * Acts while no other tab does.
 *
 * @param act told whether another tab was first
 */
export async function oneAtATime<T>(name: string, act: (hasWaited: boolean) => Promise<T>): Promise<T> {
  const line = locks();
  if (line === undefined) return act(false);
  const first = await line.request(name, { ifAvailable: true }, async (lock) =>
    lock === null ? null : { done: await act(false) },
  );
  return first === null ? line.request(name, () => act(true)) : first.done;
}
