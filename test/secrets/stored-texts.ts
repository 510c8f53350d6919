// Reads all that a secret could be stored in, as text that can be searched.

import type { Stores } from '../../src/roles/stores.ts';
import { serversOf } from '../support/redis-kind.ts';

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

/** All keys with their contents. */
export async function dumpRedis({ redis, cluster }: Stores): Promise<string> {
  const servers = serversOf({ redis, cluster });
  const names = (await Promise.all(servers.map((server) => server.command('keys', ['*'])))).flat() as string[];
  let text = '';
  for (const name of names) {
    const type = (await redis.command('type', [name])) as string;
    const read = READERS[type];
    if (read === undefined) throw new Error(`this test cannot read keys of type ${type}: ${name}`);
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

/** All spellings in which a secret could turn up. */
export function spellingsOf({ key_id, secret }: { readonly key_id: string; readonly secret: string }): string[] {
  const pair = `${key_id}:${secret}`;
  // The secret without its prefix and its checksum.
  const random = secret.slice(3, 46);
  return [secret, random, ...[secret, pair].flatMap(encodingsOf)];
}

export const encodingsOf = (text: string): string[] => [
  Buffer.from(text).toString('hex'),
  Buffer.from(text).toString('base64').replace(/=+$/, ''),
  encodeURIComponent(text),
];
