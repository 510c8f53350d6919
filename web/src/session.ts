import { computed, signal } from '@preact/signals';
import { type Api, ApiFailure, apiClient, type Credential, dataOf, type Schemas } from './api/client.ts';
import { clearToasts, say } from './design/toasts.tsx';
import {
  bearerOf,
  canKeep,
  end as endThere,
  enter,
  keep,
  kept,
  leave,
  sessionsHere,
  token,
  whenOthersChange,
} from './session/browser.ts';
import { share, sharedToken, shareNothing, type Token } from './session/tabs.ts';
import { hasKept, notKept } from './session/unkept.ts';
import { unsaved } from './unsaved.ts';

export { canKeep, sessionsHere } from './session/browser.ts';

type Who = Pick<Schemas['OwnKey'], 'key_id' | 'owner_id' | 'role'> & { readonly label?: string | null };

/**
 * Who uses this tab. Where that is possible the browser is signed in: its tabs act with bearers, which are in their memory only, and
 * nobody has the key (src/session/). Elsewhere, or if its owner wants it so, the key is in this tab: in its memory, and in
 * `sessionStorage`, which ends with the tab, if its owner asked for that. It is never in an address, a cookie or a log.
 */
export type Session = {
  /** The session of the browser; null: the key is in this tab. */
  readonly id: string | null;
  readonly key: string | null;
  /** What a request sends: the key, or a bearer. */
  readonly credential: Credential;
  readonly api: Api;
  readonly me: Schemas['OwnKey'];
  /** Whether a reload keeps it. */
  readonly remembered: boolean;
};

/** Another account to which this tab can switch: a session of this tab, or one of the browser, which is opened when needed. */
export type Other = { readonly me: Who; readonly id: string | null; readonly session: Session | null };

/** The remembered keys, that of the session first, separated by spaces. */
const STORED = 'tollgate.key';
/** Maximum keys of a tab. Each costs a request when the tab is reloaded; beyond it the one used least recently is dropped. */
const MAX_KEYS = 8;
const anonymous = apiClient(null);

export const session = signal<Session | null>(null);
/** The accounts to which this tab can switch without typing a key again, last used first. */
export const others = signal<readonly Other[]>([]);
/** Whether it is known that this tab has a session or has none; false while the gateway is asked. */
export const resumed = signal(false);
/** Why this is not known: the gateway did not answer. Null: it did, or was not asked. */
export const unanswered = signal<unknown>(null);
/** Whether nobody is signed in because the last session was ended elsewhere, or expired. */
export const wasEnded = signal(false);
/** Whether another tab has switched accounts, and this one has not followed, because something in it is not saved. */
export const hasStayed = signal(false);
/** A client with the key of this tab, or without one. */
export const api = computed<Api>(() => session.value?.api ?? anonymous);

const PARTS = 'A key has two parts: acf_… and sk_…, joined by a colon.';
const KEY_PATTERN = /^acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}$/;

/**
 * Signs in. Throws `ApiFailure`: `unauthorized` for an invalid key. @param remember in this browser; if that is impossible, across
 * a reload of this tab
 */
export async function signIn(key: string, remember: boolean): Promise<Session> {
  const text = key.trim().replace(/^Bearer\s+/i, '');
  if (!KEY_PATTERN.test(text)) {
    const isCut = /^acf_\w{0,22}:sk_\w{0,49}$/.test(text);
    const fault = isCut ? 'This key is incomplete. Copy both parts, acf_…:sk_….' : PARTS;
    throw new ApiFailure('malformed', fault, 0, null);
  }
  const signedIn = remember && canKeep() ? await entered(text) : await tried(text, remember);
  takeOver(signedIn);
  return signedIn;
}

/** Behind a proxy that hides the gateway's own name sessions do not work: the key is then in this tab. */
async function entered(key: string): Promise<Session> {
  try {
    const mine = await enter(key);
    return await opened(share(await token(mine.id)));
  } catch (failure) {
    if (failure instanceof ApiFailure && failure.status === 403) return tried(key, false);
    throw failure;
  }
}

async function tried(key: string, remembered: boolean): Promise<Session> {
  if (!KEY_PATTERN.test(key)) throw new ApiFailure('malformed', 'This is not a key.', 0, null);
  const credential: Credential = { now: async () => key, renewed: null };
  const client = apiClient(credential);
  const me = await dataOf(client.GET('/api/v1/keys/me'));
  return { id: null, key, credential, api: client, me, remembered };
}

async function opened(first: Token): Promise<Session> {
  const bearer = bearerOf(first, () => ended(first.id));
  const client = apiClient(bearer);
  const me = await dataOf(client.GET('/api/v1/keys/me'));
  return { id: first.id, key: null, credential: bearer, api: client, me, remembered: true };
}

/** Gets a bearer for a session of this browser; null: the session used last. */
const tokenOf = async (id: string | null): Promise<Token> =>
  id === null ? share(await token(null)) : sharedToken(id, () => token(id));

const asOther = (one: Session): Other => ({ me: one.me, id: one.id, session: one });

/** Switches to another account; the present one is kept beside it. */
export async function switchTo(next: Other): Promise<void> {
  takeOver(next.session ?? (await opened(await tokenOf(next.id))));
}

function takeOver(next: Session): void {
  const before = [...(session.value === null ? [] : [asOther(session.value)]), ...others.value];
  others.value = before.filter(({ me }) => me.key_id !== next.me.key_id).slice(0, MAX_KEYS - 1);
  session.value = next;
  unanswered.value = null;
  wasEnded.value = false;
  hasStayed.value = false;
  store();
  const mine = kept();
  if (next.id === null || mine === null) return;
  if (mine.id !== next.id) keep({ ...mine, id: next.id });
  void listOthers();
}

/** Reads the accounts that are signed in in this browser: another tab may have added some. */
async function listOthers(): Promise<void> {
  const round = signedOut;
  // A hidden tab would ask for nobody, at the same moment as all others of its browser.
  if (document.hidden) {
    document.addEventListener('visibilitychange', () => void listOthers(), { once: true });
    return;
  }
  const rows = kept() === null ? [] : await sessionsHere().catch(() => null);
  if (rows === null || round !== signedOut) return;
  const ofTab = others.value.filter(({ id }) => id === null);
  const here = rows.map(
    (row): Other => others.value.find(({ id }) => id === row.id) ?? { me: row, id: row.id, session: null },
  );
  const isKnown = ({ me }: Other): boolean => [session.value, ...ofTab].some((one) => one?.me.key_id === me.key_id);
  others.value = [...ofTab, ...here.filter((one) => !isKnown(one))];
}

/** Keeps people signed in whose key has got a new secret: the sessions that the former secret began end with it. */
export async function replaceSecret(keyId: string, secret: string): Promise<void> {
  const key = `${keyId}:${secret}`;
  const isOf = (one: Pick<Other, 'me'> | null): boolean => one?.me.key_id === keyId;
  const mine = [session.value, ...others.value].filter(isOf);
  const now = session.value;
  if (mine.some((one) => one?.id != null)) {
    const isCurrent = now !== null && isOf(now) && now.id !== null;
    const entered = await enter(key, isCurrent);
    // A session that gets no bearer within a minute ends.
    const first = share(await token(entered.id));
    if (isCurrent) session.value = await opened(first);
    others.value = others.value.filter((one) => !isOf(one) || one.id === null);
    await listOthers();
  }
  if (mine.some((one) => one?.id === null)) {
    const again = await tried(
      key,
      mine.some((one) => one !== null && 'remembered' in one && one.remembered),
    );
    others.value = others.value.map((one) =>
      isOf(one) && one.id === null ? asOther({ ...again, remembered: one.session?.remembered ?? false }) : one,
    );
    if (now !== null && isOf(now) && now.id === null) session.value = { ...again, remembered: now.remembered };
    store();
  }
}

/** A key is no longer valid. If the session used it, the tab continues with the previous key, or is signed out. */
export function forget(keyId: string): void {
  const left = others.value.filter(({ me }) => me.key_id !== keyId);
  if (session.value?.me.key_id === keyId) goOnWith(left);
  else others.value = left;
  store();
}

function goOnWith([next, ...rest]: readonly Other[]): void {
  const before = session.value;
  others.value = rest;
  session.value = next?.session ?? null;
  if (before?.id != null && ![next, ...rest].some((one) => one?.id != null)) keep(null);
  if (next === undefined || next.session !== null) return;
  resumed.value = false;
  void switchTo(next)
    .catch(() => {})
    .finally(() => {
      resumed.value = true;
    });
}

/** A session of this browser was ended elsewhere, or expired. */
function ended(id: string): void {
  const left = others.value.filter((one) => one.id !== id);
  if (session.value?.id !== id) {
    others.value = left;
    return;
  }
  if (left.length > 0) say(`${session.value.me.owner_id} is not signed in here any more.`);
  else wasEnded.value = true;
  goOnWith(left);
}

/** Ends one session. Throws `ApiFailure`. */
export async function endSession(id: string): Promise<void> {
  await endThere(id);
  if (session.value?.id === id) goOnWith(others.value.filter((one) => one.id !== id));
  else others.value = others.value.filter((one) => one.id !== id);
}

/** Opens an account with this label, and does not sign in. The answer has the secret, which is never shown again. */
export function createAccount(
  label: string,
  role: Schemas['CreatedKey']['role'],
  bootstrapToken = '',
): Promise<Schemas['CreatedKey']> {
  return dataOf(
    anonymous.POST('/api/v1/keys', {
      body: { owner_id: label, role },
      params: { header: bootstrapToken === '' ? {} : { 'X-Admin-Bootstrap': bootstrapToken } },
    }),
  );
}

/** Opens an account with this label and signs in. The answer has the secret, which is never shown again. */
export async function openAccount(label: string, role: 'buyer' | 'provider'): Promise<Schemas['CreatedKey']> {
  const made = await createAccount(label, role);
  notKept(made.key_id);
  await signIn(`${made.key_id}:${made.secret}`, canKeep());
  return made;
}

/** Counts sign-outs: a key that is being tried at that moment must not sign in again. */
let signedOut = 0;

/** Everybody is signed out, and messages about them are removed. */
function becomeNobody(): void {
  signedOut++;
  others.value = [];
  session.value = null;
  shareNothing();
  unanswered.value = null;
  store();
  clearToasts();
}

/**
 * Signs this browser out, and forgets all keys of this tab. With `everywhere`, throws `ApiFailure` if that did not succeed. For
 * this browser alone no request needs to succeed: the cookie is useless without the value that the browser keeps beside it.
 */
export async function signOut(everywhere = false): Promise<void> {
  const left = kept() === null ? null : leave(everywhere);
  if (everywhere) await left;
  else void left?.catch(() => {});
  if (left !== null) keep(null);
  for (const { me } of others.value) hasKept(me.key_id);
  if (session.value !== null) hasKept(session.value.me.key_id);
  becomeNobody();
}

/** Whether the key of this tab survives a reload of it. */
export function remember(remembered: boolean): void {
  if (session.value === null) return;
  session.value = { ...session.value, remembered };
  store();
}

export const isRemembered = (): boolean => session.value?.remembered === true;

/** Whether this tab hears of others. */
let follows = false;

/**
 * Signs in with the session of this browser, or with the keys that this tab was asked to remember. The first key decides whether
 * there is a session.
 */
export async function resume(): Promise<void> {
  if (!follows) whenOthersChange(() => void follow());
  follows = true;
  resumed.value = false;
  unanswered.value = null;
  const round = signedOut;
  const keys = remembered();
  // Keys that could not be tried, for example because the gateway did not answer, are kept for the next load.
  const untried = new Set(keys);
  for (const key of keys) {
    const found = await tried(key, true).catch((error: unknown) => error);
    if (round !== signedOut) return;
    const isUseless = found instanceof ApiFailure && (found.status === 401 || found.code === 'malformed');
    if (isUseless || !(found instanceof Error)) untried.delete(key);
    if (!(found instanceof Error)) add(found as Session);
    else if (!isUseless) unanswered.value = found;
    // After an invalid key the next one may work at once; after any other failure the form must not wait.
    if (!isUseless) resumed.value = true;
  }
  if (keys.length > 0) store([...untried]);
  await follow();
  resumed.value = true;
}

/**
 * Follows another tab that has signed in, switched or signed out. A key of this tab stays, and so does an account while something in
 * the tab is not saved.
 *
 * @param always  even then
 */
export async function follow(always = false): Promise<void> {
  const mine = kept();
  const now = session.value;
  if (mine === null) {
    others.value = others.value.filter(({ id }) => id === null);
    if (now?.id != null) becomeNobody();
    return;
  }
  const round = signedOut;
  hasStayed.value = !always && now?.id != null && now.id !== mine.id && unsaved.value;
  // Those who signed in elsewhere are known here, too: this tab goes on with them if its account ends.
  if (hasStayed.value) return listOthers();
  if (now === null || (now.id !== null && now.id !== mine.id)) {
    const found = await tokenOf(mine.id)
      .catch((failure: unknown) => {
        if (!(failure instanceof ApiFailure && failure.status === 401)) throw failure;
        // That session has ended. Others of this browser may go on.
        return tokenOf(null);
      })
      .then(opened)
      .catch((error: unknown) => error);
    if (round !== signedOut || kept()?.id !== mine.id) return;
    if (found instanceof ApiFailure && found.status === 401) {
      keep(null);
      becomeNobody();
      wasEnded.value = true;
    }
    if (!(found instanceof Error)) {
      takeOver(found as Session);
      if (now !== null) say(`Switched to ${(found as Session).me.owner_id}, as in another tab.`);
    } else if (kept() !== null && session.value === null) unanswered.value = found;
    return;
  }
  await listOthers();
}

/** The first key becomes that of the session; if somebody has signed in meanwhile, their key stays. */
function add(found: Session): void {
  const isKnown = [session.value, ...others.value].some((one) => one?.me.key_id === found.me.key_id);
  if (isKnown) return;
  if (session.value === null) session.value = found;
  else others.value = [...others.value, asOther(found)].slice(0, MAX_KEYS - 1);
}

/** Whether somebody is signed in, or may turn out to be. Until that is known, the page should look like theirs. */
export const mayBeSignedIn = (): boolean =>
  session.value !== null || (!resumed.value && (kept() !== null || remembered().length > 0));

/** Undefined if the browser stores nothing for this site. */
function remembered(): string[] {
  try {
    return (sessionStorage.getItem(STORED) ?? '').split(' ').filter((key) => key !== '');
  } catch {
    return [];
  }
}

/** @param also unused keys that are kept for the next load */
function store(also: readonly string[] = []): void {
  const all = [session.value, ...others.value.map((one) => one.session)];
  const keys = all.flatMap((one) => (one?.remembered && one.key !== null ? [one.key] : []));
  const stored = [...keys, ...also].slice(0, MAX_KEYS);
  try {
    if (stored.length === 0) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, stored.join(' '));
  } catch {
    // If nothing can be stored, the keys are only in the memory of the tab.
  }
}
