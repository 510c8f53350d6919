// @ts-check
import { parseArgs } from 'node:util';

/**
 * @typedef {object} Options the options of the command line. Null means the scenario's own default
 * @property {string[] | null} only scenarios
 * @property {string[] | null} peers
 * @property {number | null} seconds
 * @property {number | null} rounds
 * @property {number[] | null} connections
 * @property {number} workers
 * @property {number | null} events
 * @property {'wrk' | 'autocannon' | null} driver null: wrk if it is installed
 * @property {string | null} target URL of a gateway that runs already
 * @property {string | null} keys for `target`: a file of `npm run seed`
 * @property {string | null} path for `target`; null: a page of the catalog
 * @property {boolean} save
 * @property {boolean} list
 */

export const usage = `npm run bench -- [options]
  --list                list the scenarios, their questions and their bars
  --only NAME[,NAME]    run only these scenarios; default: all
  --peers NAME[,NAME]   measure only these peers; default: all that can run here
  --seconds N           length of one measurement; the clock of /proc needs at least 4
  --rounds N            how often each peer is measured; peers take turns
  --connections N[,N]   open connections, one call at a time on each
  --workers N           processes of each proxy (1)
  --events N            events that the scenario usage-pipeline stores; calls that the scenario pages begins with
  --driver NAME         wrk or autocannon; default: wrk if it is installed
  --no-save             write nothing to bench/results
  --target URL          measure a gateway that runs already, from outside: no peers, no CPU. Needs
    --keys FILE         keys to call with, as npm run seed writes them
    --path PATH         what to call, e.g. /api/v1/proxy/<service id>/<path>; default: a page of the catalog`;

export class UsageError extends Error {}

/** @param {readonly string[]} args @returns {Options} throws UsageError */
export function parseOptions(args) {
  const { values } = parse(args);
  if (values.driver !== undefined && values.driver !== 'wrk' && values.driver !== 'autocannon') {
    throw new UsageError('--driver must be wrk or autocannon');
  }
  if (values.target !== undefined && values.keys === undefined) {
    throw new UsageError('--target needs --keys');
  }
  return {
    only: values.only?.split(',') ?? null,
    peers: values.peers?.split(',') ?? null,
    seconds: count('--seconds', values.seconds, 600),
    rounds: count('--rounds', values.rounds, 100),
    connections: values.connections?.split(',').map((text) => count('--connections', text, 20_000) ?? 0) ?? null,
    workers: count('--workers', values.workers, 64) ?? 1,
    events: count('--events', values.events, 100_000_000),
    driver: values.driver ?? null,
    target: values.target ?? null,
    keys: values.keys ?? null,
    path: values.path ?? null,
    save: !values['no-save'],
    list: values.list ?? false,
  };
}

/** @param {readonly string[]} args */
function parse(args) {
  const text = /** @type {const} */ ({ type: 'string' });
  const flag = /** @type {const} */ ({ type: 'boolean' });
  const options = {
    only: text,
    peers: text,
    seconds: text,
    rounds: text,
    connections: text,
    workers: text,
    driver: text,
    events: text,
    target: text,
    keys: text,
    path: text,
    list: flag,
    'no-save': flag,
  };
  try {
    return parseArgs({ args: [...args], options });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

/** @param {string} name @param {string | undefined} text @param {number} max */
function count(name, text, max) {
  if (text === undefined) return null;
  const value = Number(text);
  if (/^\d+$/.test(text) && value >= 1 && value <= max) return value;
  throw new UsageError(`${name} must be a whole number from 1 to ${max}, not '${text}'`);
}
