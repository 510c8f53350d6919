import { computed, signal } from '@preact/signals';
import { type Api, ApiFailure, apiClient, dataOf, type Schemas } from './api/client.ts';

/**
 * Who uses this tab. The key is in the tab's memory. It is also in `sessionStorage`, which ends with the tab, if its owner asked for
 * that; it is never in an address, a cookie or a log.
 */
export type Session = { readonly key: string; readonly api: Api; readonly me: Schemas['OwnKey'] };

const STORED = 'tollgate.key';
const anonymous = apiClient(null);

export const session = signal<Session | null>(null);
/** Whether it is decided that this tab has a key, or has none: false while a remembered key is tried. */
export const resumed = signal(false);
/** A client with the key of this tab, or without one. */
export const api = computed<Api>(() => session.value?.api ?? anonymous);

export const KEY_PATTERN = /^acf_[0-9A-Za-z]{22}:sk_[0-9A-Za-z]{49}$/;

/** Signs in. Throws `ApiFailure`: `unauthorized` for a key that is not good. @param remember  also after a reload of this tab */
export async function signIn(key: string, remember: boolean): Promise<Session> {
  const text = key.trim().replace(/^Bearer\s+/i, '');
  if (!KEY_PATTERN.test(text)) {
    throw new ApiFailure('malformed', 'A key has two parts: acf_… and sk_…, joined by a colon.', 0, null);
  }
  const client = apiClient(text);
  const me = await dataOf(client.GET('/api/v1/keys/me'));
  const signedIn = { key: text, api: client, me };
  session.value = signedIn;
  if (remember) sessionStorage.setItem(STORED, text);
  return signedIn;
}

/** Opens an account with this label and signs in. The answer has the secret, which is never shown again. */
export async function openAccount(
  label: string,
  role: 'buyer' | 'provider',
  remember: boolean,
): Promise<Schemas['CreatedKey']> {
  const made = await dataOf(anonymous.POST('/api/v1/keys', { body: { owner_id: label, role } }));
  await signIn(`${made.key_id}:${made.secret}`, remember);
  return made;
}

export function signOut(): void {
  sessionStorage.removeItem(STORED);
  session.value = null;
}

export const isRemembered = (): boolean => sessionStorage.getItem(STORED) !== null;

/** Signs in with the key that this tab was asked to remember, if there is one. Resolves when that is decided. */
export async function resume(): Promise<void> {
  const key = sessionStorage.getItem(STORED);
  try {
    if (key !== null) await signIn(key, true);
  } catch (error) {
    // A revoked key is of no use. After any other failure the next load tries it again.
    if (error instanceof ApiFailure && error.status === 401) sessionStorage.removeItem(STORED);
  } finally {
    resumed.value = true;
  }
}
