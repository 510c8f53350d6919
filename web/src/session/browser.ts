// What this browser stores about signed-in accounts, and what pages may do with it. Tested by test/web/sessions.test.ts.

import { type Credential, dataOf, type Schemas, sessionClient } from '../api/client.ts';
import { MIN_LEFT_MS, oneAtATime, sharedToken, type Token } from './tabs.ts';

/**
 * The half of the browser's secret that belongs to this origin, and the session that its pages show. The other half is a cookie,
 * which the browser also sends to other ports of this host, and also accepts from sibling subdomains: alone it is useless.
 */
export type Kept = { readonly page: string; readonly id: string };

const STORED = 'tollgate.session';

/** Null: nobody is signed in in this browser, or it stores nothing for this site. */
export function kept(): Kept | null {
  try {
    const { page, id } = JSON.parse(localStorage.getItem(STORED) ?? '{}') as Partial<Kept>;
    return page === undefined || id === undefined ? null : { page, id };
  } catch {
    return null;
  }
}

/** Stores the session to show. All tabs of the browser follow. */
export function keep(what: Kept | null): void {
  if (what === null) localStorage.removeItem(STORED);
  else localStorage.setItem(STORED, JSON.stringify(what));
}

/** Calls `follow` when another tab has signed in, switched or signed out. */
export function whenOthersChange(follow: () => void): void {
  addEventListener('storage', ({ key }) => {
    if (key === STORED || key === null) follow();
  });
}

/**
 * Whether this browser can be signed in here: the gateway accepts sessions only where no stranger can be in between or share the
 * origin's cookies.
 */
export function canKeep(): boolean {
  const { protocol, hostname } = location;
  if (protocol !== 'https:' && hostname !== 'localhost' && !/^(?:[\d.]+|\[[\da-f:.]+\])$/i.test(hostname)) return false;
  try {
    localStorage.setItem(`${STORED}.probe`, '');
    localStorage.removeItem(`${STORED}.probe`);
    return true;
  } catch {
    return false;
  }
}

const pageOf = (): string => kept()?.page ?? newPage();

/** 256 random bits. */
const newPage = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(32)), (byte) => byte.toString(16).padStart(2, '0')).join('');

const clientOf = (page: string, key?: string): ReturnType<typeof sessionClient> =>
  sessionClient({ 'X-ACF-Page-Secret': page, ...(key === undefined ? {} : { Authorization: `Bearer ${key}` }) });

/**
 * Signs this browser in, in addition to other accounts, and stores that. Throws `ApiFailure`. Two tabs of a new browser would each
 * invent a secret, and the last stored one need not belong to the last cookie: so they sign in one after the other. @param isShown
 * whether the pages show the new session from now on
 *
 * @param isShown  whether the pages show the new session from now on
 */
export function enter(key: string, isShown = true): Promise<Kept> {
  return oneAtATime(STORED, async () => {
    const page = pageOf();
    const { id } = await dataOf(clientOf(page, key).POST('/api/v1/session'));
    keep({ page, id: isShown ? id : (kept()?.id ?? id) });
    return { page, id };
  });
}

/** @param everywhere also the sessions in other browsers that this one may end */
export async function sessionsHere(everywhere = false): Promise<readonly Schemas['Session'][]> {
  const asked = clientOf(pageOf()).GET('/api/v1/session', { params: { query: everywhere ? { everywhere } : {} } });
  return (await dataOf(asked)).sessions;
}

/** Ends the sessions of this browser, or everywhere. */
export async function leave(everywhere: boolean): Promise<void> {
  await dataOf(clientOf(pageOf()).DELETE('/api/v1/session', { params: { query: everywhere ? { everywhere } : {} } }));
}

export async function end(id: string): Promise<void> {
  await dataOf(clientOf(pageOf()).DELETE('/api/v1/session/{id}', { params: { path: { id } } }));
}

/** Gets a bearer of the session; null: the session used last. Throws `ApiFailure`: 401 if it has ended. */
export async function token(id: string | null): Promise<Token> {
  const asked = clientOf(pageOf()).POST('/api/v1/session/token', { body: id === null ? {} : { id } });
  const { response } = await asked.catch(() => ({ response: null }));
  const { id: its, bearer, expires_at } = await dataOf(asked);
  // By the gateway's clock, because that of this machine may be wrong by hours.
  const nowThere = Date.parse(response?.headers.get('Date') ?? '') || Date.now();
  return { id: its, text: bearer, untilMs: performance.now() + Date.parse(expires_at) - nowThere };
}

/**
 * While another tab signs in, this one may ask with the former cookie. That cookie becomes invalid a minute after the new one was
 * shown.
 */
const SIGN_IN_MS = 1_000;

async function tokenTwice(id: string): Promise<Token> {
  try {
    return await token(id);
  } catch (failure) {
    if ((failure as { status?: number }).status !== 401) throw failure;
    await new Promise((resolve) => setTimeout(resolve, SIGN_IN_MS));
    return token(id);
  }
}

/**
 * The credential of a session of this browser. It is only in the memory of this page.
 *
 * @param onEnd  the session has ended
 */
export function bearerOf(first: Token, onEnd: () => void): Credential {
  let present = first;
  let asked: Promise<string> | null = null;
  const renew = async (refused: string | null): Promise<string> => {
    try {
      present = await sharedToken(first.id, () => tokenTwice(first.id), refused);
      return present.text;
    } catch (failure) {
      if ((failure as { status?: number }).status === 401) onEnd();
      throw failure;
    } finally {
      asked = null;
    }
  };
  const another = (refused: string | null): Promise<string> => {
    asked ??= renew(refused);
    return asked;
  };
  return {
    now: async () => (present.untilMs - performance.now() > MIN_LEFT_MS ? present.text : another(null)),
    // Another request may have got a new one meanwhile.
    renewed: async (refused) => (present.text === refused ? another(refused) : present.text),
  };
}
