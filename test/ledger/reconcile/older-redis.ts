// Makes Redis come back with the state it had at an earlier moment, like a Redis that lost its last writes.

import type { Store } from '../../support/store.ts';
import { until } from '../../support/wait.ts';

type With = { readonly store: Store };

/** Saves the state with which Redis will come back. */
export async function keepState({ store }: With): Promise<void> {
  await store.command('save');
  // Wait, so that nothing after this happens in the same millisecond as the saved state.
  const now = await store.now();
  await until(async () => (await store.now()) > now + 1);
}

/** Kills Redis and starts it with the state that `keepState` saved. This Redis saves nothing to disk by itself. */
export async function comeBackOlder({ store }: With): Promise<void> {
  await store.server.kill();
  await store.server.restart();
  await store.reconnected();
}
