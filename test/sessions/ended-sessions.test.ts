import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { EndedSessions } from '../../src/sessions/ended-sessions.ts';
import { deleteEnded } from '../../src/sessions/sessions-sql.ts';
import { addAccount } from '../support/accounts.ts';
import { QUIET } from '../support/store.ts';
import { sql, useDatabase } from '../support/use-database.ts';
import { until } from '../support/wait.ts';

useDatabase();

const HASH = (of: string) => of.repeat(64);

/** A session of a key whose secret is as it was when it signed in. */
async function addSession(expiresIn = '1 day'): Promise<{ readonly id: string; readonly keyId: string }> {
  const [id, { keyId }] = [randomUUID(), await addAccount(sql)];
  await sql`
    INSERT INTO sessions (id, key_id, browser_hash, secret_hash, expires_at)
    SELECT ${id}, key_id, ${HASH('b')}, secret_hash, now() + ${expiresIn}::interval FROM api_keys WHERE key_id = ${keyId}`;
  return { id, keyId };
}

const left = async (): Promise<string[]> =>
  (await sql<{ id: string }[]>`SELECT id FROM sessions`).map(({ id }) => id).sort();

it('only sessions that ended by time, with their key or with its secret are removed', async () => {
  const [live, revoked, rotated, overlapping] = [
    await addSession(),
    await addSession(),
    await addSession(),
    await addSession(),
  ];
  await addSession('-1 second');
  await sql`UPDATE api_keys SET status = 'revoked' WHERE key_id = ${revoked.keyId}`;
  await sql`UPDATE api_keys SET secret_hash = ${HASH('c')} WHERE key_id = ${rotated.keyId}`;
  await sql`
    UPDATE api_keys SET previous_secret_hash = secret_hash, previous_expires_at = now() + interval '1 hour', secret_hash = ${HASH('d')}
    WHERE key_id = ${overlapping.keyId}`;
  expect(await deleteEnded(sql, 1), 'no more than asked for').toBe(1);
  const job = new EndedSessions({ sql, isActive: () => true, log: QUIET });
  job.start();
  await until(async () => (await left()).length === 2);
  await job.stop();
  expect(await left()).toEqual([live.id, overlapping.id].sort());
  expect(await deleteEnded(sql, 10)).toBe(0);
});
