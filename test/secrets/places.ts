// Every place where a secret could come to rest, as text to search.

import type { Stores } from '../../src/roles/stores.ts';

/** All rows of all tables. */
export async function dumpPostgres({ sql }: Stores): Promise<string> {
  const tables = await sql<{ name: string }[]>`
    SELECT quote_ident(tablename) AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY 1`;
  let text = '';
  for (const { name } of tables) {
    const rows = await sql.unsafe<{ row: string }>(`SELECT row_to_json(t)::text AS row FROM ${name} t`);
    text += rows.map(({ row }) => `${name} ${row}\n`).join('');
  }
  return text;
}

/** All keys with what is in them. */
export async function dumpRedis({ redis }: Stores): Promise<string> {
  const names = (await redis.command('keys', ['*'])) as string[];
  let text = '';
  for (const name of names) {
    const type = (await redis.command('type', [name])) as string;
    const read = READERS[type];
    if (read === undefined) throw new Error(`a key of type ${type} is not looked into: ${name}`);
    text += `${name} ${JSON.stringify(await redis.command(read[0], [name, ...read[1]]))}\n`;
  }
  return text;
}

const READERS: Readonly<Record<string, readonly [command: string, args: readonly string[]]>> = {
  string: ['get', []],
  hash: ['hgetall', []],
  stream: ['xrange', ['-', '+']],
  zset: ['zrange', ['0', '-1']],
  set: ['smembers', []],
  list: ['lrange', ['0', '-1']],
};

/** A secret in the spellings it may turn up in. */
export function spellingsOf({ key_id, secret }: { readonly key_id: string; readonly secret: string }): string[] {
  const pair = `${key_id}:${secret}`;
  // Without its prefix, and without its checksum.
  const random = secret.slice(3, 46);
  const encoded = [secret, pair].flatMap((text) => [
    Buffer.from(text).toString('hex'),
    Buffer.from(text).toString('base64').replace(/=+$/, ''),
    encodeURIComponent(text),
  ]);
  return [secret, random, ...encoded];
}
