import { signal } from '@preact/signals';

// Keys that were shown once in this browser, and that nobody has said to have kept. Signing out would lose their account.

const STORED = 'tollgate.unkept';
/** Maximum keys that are remembered. Beyond it the oldest is forgotten, which asks nothing of its owner any more. */
const MAX_KEYS = 8;

/** Their ids. */
export const unkept = signal<readonly string[]>(stored());

/** @param keyId  of a key whose secret is shown at this moment */
export const notKept = (keyId: string): void => store([keyId, ...unkept.value].slice(0, MAX_KEYS));

/** Its owner has kept the secret or another key of the account, or has left it. */
export const hasKept = (keyId: string): void => store(unkept.value.filter((one) => one !== keyId));

function store(keyIds: readonly string[]): void {
  unkept.value = keyIds;
  try {
    if (keyIds.length === 0) localStorage.removeItem(STORED);
    else localStorage.setItem(STORED, keyIds.join(' '));
  } catch {
    // A browser that keeps nothing asks until its tab is closed.
  }
}

function stored(): string[] {
  try {
    return (localStorage.getItem(STORED) ?? '').split(' ').filter((keyId) => keyId !== '');
  } catch {
    return [];
  }
}
