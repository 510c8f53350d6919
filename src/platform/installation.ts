import { defineScript, type Script } from './script.ts';

/** Redis key of the id of the installation that the data belongs to. A flush removes it with all of them. */
export const INSTALLATION_KEY = 'tollgate:installation';

/**
 * Before a script: compares the installation's id, the last of ARGV, with the one that stands in Redis, the last of KEYS. A
 * Redis without one is claimed. All in one step with the script, so that nothing is carried out in a Redis that was flushed
 * and claimed by another installation a moment ago.
 */
const GUARD = [
  'local k, i = table.remove(KEYS), table.remove(ARGV)',
  "local o = redis.call('GET', k)",
  "if not o then redis.call('SET', k, i)",
  "elseif o ~= i then return redis.error_reply('FOREIGN ' .. o) end ",
].join(' ');

/** The script behind the guard, on the lines it had. A shebang stays the first line. */
export function guarded({ name, source }: Script): Script {
  const start = source.startsWith('#!') ? source.indexOf('\n') + 1 : 0;
  return defineScript(name, source.slice(0, start) + GUARD + source.slice(start));
}

/** Does nothing: run for its guard. It must pass in a Redis that is full, or a full Redis could not be connected to again. */
export const claimScript = defineScript('claim', '#!lua flags=allow-oom\nreturn 1');
export const guardedClaim = guarded(claimScript);

/** Redis has the data of another installation: it counts as away, whatever it answers. */
export class ForeignRedis extends Error {
  constructor(reason: string) {
    super(
      `${reason}. Give each installation a Redis or a database number of its own. ` +
        '(If nothing in this Redis is needed any more, because its database was lost, flush it.)',
    );
    this.name = 'ForeignRedis';
  }
}

/** @param ours null: our database is new. @param where which stores these are */
export function ownedByAnother(owner: string, ours: string | null, where = ''): ForeignRedis {
  const database = ours === null ? 'our database is new' : `our database belongs to installation ${ours}`;
  const stores = where === '' ? '' : ` (${where})`;
  return new ForeignRedis(`this Redis holds the data of installation ${owner}, but ${database}${stores}`);
}

/** The guard's reply as the error it stands for; null when it is none. */
export function foreignRedis(message: string, ours: string): ForeignRedis | null {
  const owner = /^FOREIGN (\S+)/.exec(message)?.[1];
  return owner === undefined ? null : ownedByAnother(owner, ours);
}

/** Whether to log this failure: one line per outage, and one more when the cause turns out to be another installation's data. */
export const isNews = (error: unknown, reported: unknown): boolean =>
  reported === null || (error instanceof ForeignRedis && !(reported instanceof ForeignRedis));
