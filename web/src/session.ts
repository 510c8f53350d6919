import { computed, signal } from '@preact/signals';
import { type Api, ApiFailure, apiClient, dataOf, type Schemas } from './api/client.ts';

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

export const KEY_PATTERN = /^acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}$/;

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

/** Forgets all keys of this tab. */
export function signOut(): void {
  others.value = [];
  session.value = null;
  store();
}

/** Whether the session's key survives a reload of this tab. */
export function remember(remembered: boolean): void {
  if (session.value === null) return;
  session.value = { ...session.value, remembered };
  store();
}

export const isRemembered = (): boolean => session.value?.remembered === true;

/** Signs in with the keys that this tab was asked to remember, if there are any. Resolves when the first is decided. */
export async function resume(): Promise<void> {
  const [first, ...more] = (sessionStorage.getItem(STORED) ?? '').split(' ').filter((key) => key !== '');
  try {
    if (first !== undefined) session.value = await tried(first, true);
  } catch (error) {
    // A revoked key is of no use. After any other failure the next load tries it again.
    if (error instanceof ApiFailure && error.status === 401) sessionStorage.removeItem(STORED);
  } finally {
    resumed.value = true;
  }
  for (const key of more) {
    const other = await tried(key, true).catch(() => null);
    if (other === null) continue;
    if (session.value === null) session.value = other;
    else others.value = [...others.value, other];
  }
}

function store(): void {
  const all = [...(session.value === null ? [] : [session.value]), ...others.value];
  const remembered = all.filter((one) => one.remembered).map(({ key }) => key);
  if (remembered.length === 0) sessionStorage.removeItem(STORED);
  else sessionStorage.setItem(STORED, remembered.join(' '));
}
