import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { hostOf, Store } from '../support/store.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open(200);
});
afterAll(async () => {
  store.server.resume();
  await store.close();
});

const stackOf = (failing: Promise<unknown>): Promise<string> =>
  failing.then(
    () => 'did not fail',
    (error: Error) => String(error.stack),
  );

describe('the stack of a failed command', () => {
  it('names the test when Redis refuses it', async () => {
    expect(await stackOf(store.command('no-such-command'))).toMatch(/unknown command.*caller-stack\.test\.ts/s);
  });

  it('names the test when Redis does not answer', async () => {
    store.server.pause();
    expect(await stackOf(store.command('time'))).toMatch(/Command timed out.*caller-stack\.test\.ts/s);
    expect(await stackOf(store.run([], hostOf(store.keys, 'gateway-1')))).toMatch(/timed out.*caller-stack\.test\.ts/s);
  });
});
