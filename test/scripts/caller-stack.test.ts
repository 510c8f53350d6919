import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostOf, Store } from '../support/store.ts';

// A set-up on a slow machine ends within this time, too. One test waits for it to pass, once.
const COMMAND_TIMEOUT_MS = 5_000;

let store: Store;
beforeAll(async () => {
  store = await Store.open(COMMAND_TIMEOUT_MS);
});
afterAll(() => store?.close());

const stackOf = (failing: Promise<unknown>): Promise<string> =>
  failing.then(
    () => 'did not fail',
    (error: Error) => String(error.stack),
  );

describe('the stack of a failed command', () => {
  it('names the test when Redis refuses the command', async () => {
    expect(await stackOf(store.command('no-such-command'))).toMatch(/unknown command.*caller-stack\.test\.ts/s);
  });

  it('names the test when Redis does not answer', async () => {
    store.server.pause();
    const unanswered = [store.command('time'), store.run([], hostOf(store.keys, 'gateway-1'))];
    const stacks = await Promise.all(unanswered.map(stackOf)).finally(() => store.server.resume());
    for (const stack of stacks) expect(stack).toMatch(/Command timed out.*caller-stack\.test\.ts/s);
  });
});
