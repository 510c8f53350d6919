// A Redis that comes back with the state it had at some moment, as one that lost its last writes does.

import type { Store } from '../../admission/redis.ts';
import { until } from '../../support/wait.ts';

type With = { readonly store: Store };

/** The state that Redis will come back with. */
export async function keepState({ store }: With): Promise<void> {
  await store.command('save');
  // What happens in the same millisecond is on neither side.
  const now = await store.now();
  await until(async () => (await store.now()) > now + 1);
}

/** Redis dies, and starts with what `keepState` kept: it writes nothing to disk by itself. */
export async function comeBackOlder({ store }: With): Promise<void> {
  await store.server.kill();
  await store.server.restart();
  await until(() => store.redis.ready);
}
