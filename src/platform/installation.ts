import { defineScript, type Script } from './script.ts';

/**
 * The Redis key with the id of the installation that owns the other data in this Redis. A flush removes the key with those data.
 */
export const INSTALLATION_KEY = 'tollgate:installation';

/**
 * Code that is put before a script. It compares our installation's id (the last of ARGV) with the id in Redis (the last of KEYS),
 * and claims a Redis that has none. It runs in one step with the script, so the script cannot change a Redis that has just been
 * flushed and claimed by another installation.
 */
const GUARD = [
  'local k, i = table.remove(KEYS), table.remove(ARGV)',
  "local o = redis.call('GET', k)",
  "if not o then redis.call('SET', k, i)",
  "elseif o ~= i then return redis.error_reply('FOREIGN ' .. o) end ",
].join(' ');

/** The script with the guard before it. A shebang stays the first line, and the script's line numbers in errors stay the same. */
export function guarded({ name, source }: Script): Script {
  const start = source.startsWith('#!') ? source.indexOf('\n') + 1 : 0;
  return defineScript(name, source.slice(0, start) + GUARD + source.slice(start));
}

/**
 * Does nothing itself: it is run for its guard. It is allowed in a full Redis (allow-oom); otherwise the gateway could not
 * reconnect to a full Redis.
 */
export const claimScript = defineScript('claim', '#!lua flags=allow-oom\nreturn 1');
export const guardedClaim = guarded(claimScript);

/** The error for a Redis that has the data of another installation. It counts as unavailable, whatever it answers. */
export class ForeignRedis extends Error {
  constructor(reason: string) {
    super(
      `${reason}. Give each installation a Redis or a database number of its own. ` +
        '(If nothing in this Redis is needed any more, because its database was lost, flush it.)',
    );
    this.name = 'ForeignRedis';
  }
}

/** @param ours id of our installation, null when our database is new @param where names both stores, for the message */
export function ownedByAnother(owner: string, ours: string | null, where = ''): ForeignRedis {
  const database = ours === null ? 'our database is new' : `our database belongs to installation ${ours}`;
  const stores = where === '' ? '' : ` (${where})`;
  return new ForeignRedis(`this Redis holds the data of installation ${owner}, but ${database}${stores}`);
}

/** The error for an error reply of GUARD; null when the reply is not the guard's. */
export function foreignRedis(message: string, ours: string): ForeignRedis | null {
  const owner = /^FOREIGN (\S+)/.exec(message)?.[1];
  return owner === undefined ? null : ownedByAnother(owner, ours);
}

/** Whether to log this failure: one line per outage, and another one when it turns out that the data are another installation's. */
export const isNews = (error: unknown, reported: unknown): boolean =>
  reported === null || (error instanceof ForeignRedis && !(reported instanceof ForeignRedis));
