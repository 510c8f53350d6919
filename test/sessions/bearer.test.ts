import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { type Browser, newBrowser } from '../../src/sessions/browser.ts';
import { Sessions } from '../../src/sessions/sessions.ts';
import { addAccount } from '../support/accounts.ts';
import { sql, useDatabase } from '../support/use-database.ts';

useDatabase();

/** A browser that is signed in with a key of its own. */
async function signedIn(): Promise<Browser> {
  const browser = newBrowser(() => undefined);
  const { keyId } = await addAccount(sql);
  await sql`
    INSERT INTO sessions (id, key_id, browser_hash, secret_hash, expires_at)
    SELECT ${randomUUID()}, key_id, ${browser.hash}, secret_hash, now() + interval '1 day' FROM api_keys WHERE key_id = ${keyId}`;
  return browser;
}

// Over HTTP the rule is met first where the bucket of a request is looked for (`Holders`).
it('a request with the cookies of two browsers gets the bearer of neither, because one of them was planted', async () => {
  const sessions = new Sessions({ sql, cache: { invalidate: () => {} }, sessionDays: 14 });
  const [one, two] = [await signedIn(), await signedIn()];
  expect(await sessions.bearer([one, two], null)).toBeNull();
  expect(await sessions.bearer([two, one], null)).toBeNull();
  expect(await sessions.of([one, two])).toEqual([]);
  for (const browser of [one, two]) {
    expect(await sessions.bearer([browser, newBrowser(() => undefined)], null)).toMatchObject({
      session: { browser_hash: browser.hash },
    });
  }
});
