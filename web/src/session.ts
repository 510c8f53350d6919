import { computed, signal } from '@preact/signals';
import { type Api, ApiFailure, apiClient, dataOf, type Schemas } from './api/client.ts';
import { clearToasts } from './design/toasts.tsx';

/**
 * Who uses this tab. The key is in the tab's memory. It is also in `sessionStorage`, which ends with the tab, if its owner asked for
 * that; it is never in an address, a cookie or a log.
 */
export type Session = {
  readonly key: string;
  readonly api: Api;
  readonly me: Schemas['OwnKey'];
  /** Whether a reload keeps it. */
  readonly remembered: boolean;
};

/** The remembered keys, that of the session first, with a space between two. */
const STORED = 'tollgate.key';
/** Maximum keys that a tab has. Each costs a request when the tab is loaded again; beyond it the one used least recently is dropped. */
const MAX_KEYS = 8;
const anonymous = apiClient(null);

export const session = signal<Session | null>(null);
/** The other keys of this tab, the last used first: their owner can switch without typing them again. */
export const others = signal<readonly Session[]>([]);
/** Whether it is decided that this tab has a key, or has none: false while a remembered key is tried. */
export const resumed = signal(false);
/** A client with the key of this tab, or without one. */
export const api = computed<Api>(() => session.value?.api ?? anonymous);

const KEY_PATTERN = /^acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}$/;

/** Signs in. Throws `ApiFailure`: `unauthorized` for a key that is not good. @param remember  also after a reload of this tab */
export async function signIn(key: string, remember: boolean): Promise<Session> {
  const signedIn = await tried(key, remember);
  switchTo(signedIn);
  return signedIn;
}

async function tried(key: string, remembered: boolean): Promise<Session> {
  const text = key.trim().replace(/^Bearer\s+/i, '');
  if (!KEY_PATTERN.test(text)) {
    throw new ApiFailure('malformed', 'A key has two parts: acf_… and sk_…, joined by a colon.', 0, null);
  }
  const client = apiClient(text);
  const me = await dataOf(client.GET('/api/v1/keys/me'));
  return { key: text, api: client, me, remembered };
}

/** Goes on with another key of this tab; the present one is kept beside it. */
export function switchTo(next: Session): void {
  const kept = [...(session.value === null ? [] : [session.value]), ...others.value];
  others.value = kept.filter(({ me }) => me.key_id !== next.me.key_id).slice(0, MAX_KEYS - 1);
  session.value = next;
  store();
}

/** A key of this tab has a new secret. */
export function replaceSecret(keyId: string, secret: string): void {
  const changed = (old: Session): Session => {
    if (old.me.key_id !== keyId) return old;
    const key = `${keyId}:${secret}`;
    return { ...old, key, api: apiClient(key) };
  };
  others.value = others.value.map(changed);
  if (session.value !== null) session.value = changed(session.value);
  store();
}

/** A key is of no use any more. If it was that of the session, the tab goes on with the last one before it, or is signed out. */
export function forget(keyId: string): void {
  const left = others.value.filter(({ me }) => me.key_id !== keyId);
  if (session.value?.me.key_id === keyId) {
    const [next = null, ...rest] = left;
    others.value = rest;
    session.value = next;
  } else {
    others.value = left;
  }
  store();
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
export async function openAccount(
  label: string,
  role: 'buyer' | 'provider',
  remember: boolean,
): Promise<Schemas['CreatedKey']> {
  const made = await createAccount(label, role);
  await signIn(`${made.key_id}:${made.secret}`, remember);
  return made;
}

/** Counts the times that somebody signed out: a key that is being tried at that moment must not sign in again. */
let signedOut = 0;

/** Forgets all keys of this tab, and what was said of them in passing. */
export function signOut(): void {
  signedOut++;
  others.value = [];
  session.value = null;
  store();
  clearToasts();
}

/** Whether the session's key survives a reload of this tab. */
export function remember(remembered: boolean): void {
  if (session.value === null) return;
  session.value = { ...session.value, remembered };
  store();
}

export const isRemembered = (): boolean => session.value?.remembered === true;

/** Signs in with the keys that this tab was asked to remember, if there are any. The first decides whether there is a session. */
export async function resume(): Promise<void> {
  const round = signedOut;
  const keys = remembered();
  // What was not tried to its end, for example because the gateway did not answer, is for the next load.
  const untried = new Set(keys);
  for (const key of keys) {
    const found = await tried(key, true).catch((error: unknown) => error);
    if (round !== signedOut) return;
    const isUseless = found instanceof ApiFailure && (found.status === 401 || found.code === 'malformed');
    if (isUseless || !(found instanceof Error)) untried.delete(key);
    if (!(found instanceof Error)) add(found as Session);
    // After one of no use the next key may be good at once; after any other failure the form must not wait.
    if (!isUseless) resumed.value = true;
  }
  resumed.value = true;
  if (keys.length > 0) store([...untried]);
}

/** The key that comes first is that of the session; whoever has signed in meanwhile keeps theirs. */
function add(found: Session): void {
  const isKnown = [session.value, ...others.value].some((one) => one?.me.key_id === found.me.key_id);
  if (isKnown) return;
  if (session.value === null) session.value = found;
  else others.value = [...others.value, found].slice(0, MAX_KEYS - 1);
}

/** Nothing where the browser keeps nothing for this site. */
function remembered(): string[] {
  try {
    return (sessionStorage.getItem(STORED) ?? '').split(' ').filter((key) => key !== '');
  } catch {
    return [];
  }
}

/** @param also  keys that are not in use, and are kept for the next load */
function store(also: readonly string[] = []): void {
  const all = [...(session.value === null ? [] : [session.value]), ...others.value];
  const kept = [...all.filter((one) => one.remembered).map(({ key }) => key), ...also].slice(0, MAX_KEYS);
  try {
    if (kept.length === 0) sessionStorage.removeItem(STORED);
    else sessionStorage.setItem(STORED, kept.join(' '));
  } catch {
    // Where nothing can be kept, the keys are in the memory of the tab.
  }
}
