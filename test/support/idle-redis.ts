// Redis servers that tests have given back, for the next test file of this worker. Starting one takes 40 ms of CPU, emptying one 1 ms.

import { readdirSync } from 'node:fs';
import { setTimeout } from 'node:timers/promises';
import { askPort } from '../../scripts/local/ports.mjs';
import type { TestRedis } from './stores.ts';

/** What FLUSHALL leaves of a former user, and what a test may have begun. */
const EMPTY = [
  'CLIENT UNPAUSE',
  'FLUSHALL SYNC',
  'SCRIPT FLUSH SYNC',
  'FUNCTION FLUSH SYNC',
  'CONFIG RESETSTAT',
  'SLOWLOG RESET',
];
/** What must be as it was at the start: settings, users, and whether it has followed, or been followed by, another server. */
const STATE = ['CONFIG GET *', 'ACL LIST', 'ROLE'];
/** A snapshot would be loaded by a restart. */
const OWN_FILES = ['redis.conf', 'redis.log'];
/** A client whose connection was closed just now may still be listed. */
const LEAVING_MS = 5_000;
const ANSWER_WITHIN_MS = 10_000;

const idle: TestRedis[] = [];

export const takeIdle = (): TestRedis | undefined => idle.pop();

const ask = (port: number, commands: readonly string[]): Promise<string | null> =>
  askPort(port, [...commands, 'QUIT', ''].join('\r\n'), ANSWER_WITHIN_MS);

export const stateOf = ({ port }: Pick<TestRedis, 'port'>): Promise<string | null> => ask(port, STATE);

/** Keeps a server for the next user if it is as it was at its start and nobody is connected any more. Otherwise stops it. */
export async function giveBack(server: TestRedis, stateAtStart: string | null): Promise<void> {
  const startedAt = performance.now();
  let found = await empty(server, stateAtStart);
  while (found === 'in use' && performance.now() - startedAt < LEAVING_MS) {
    await setTimeout(10);
    found = await empty(server, stateAtStart);
  }
  if (found === 'as new') idle.push(server);
  else await server.stop();
}

/** A server that a test has stopped or killed may have left its port to the Redis of another file, which nobody may empty. */
async function isAt({ port, pid }: TestRedis): Promise<boolean> {
  return (await ask(port, ['INFO server']))?.includes(`\r\nprocess_id:${pid}\r\n`) === true;
}

async function empty(server: TestRedis, stateAtStart: string | null): Promise<'as new' | 'changed' | 'in use'> {
  const { port, dir } = server;
  if (stateAtStart === null || readdirSync(dir).some((file) => !OWN_FILES.includes(file))) return 'changed';
  if (!(await isAt(server))) return 'changed';
  const answer = await ask(port, [...EMPTY, 'CLIENT LIST', ...STATE]);
  const [begin, end] = ['+OK\r\n'.repeat(EMPTY.length), stateAtStart];
  if (answer === null || !answer.startsWith(begin) || !answer.endsWith(end)) return 'changed';
  const clients = answer.slice(begin.length, -end.length).match(/^id=/gm);
  return clients?.length === 1 ? 'as new' : 'in use';
}
