import { readFileSync } from 'node:fs';
import type { RedisStore } from '../../src/platform/redis.ts';
import { defineScript } from '../../src/platform/script.ts';

const inText = readFileSync(new URL('../../src/ledger/scripts/includes/in-text.lua', import.meta.url), 'utf8');
const readScript = defineScript(
  'read-in-text',
  `${inText}
local fields = redis.call('HGETALL', KEYS[1])
in_text(fields)
return fields`,
);
const writeScript = defineScript(
  'write-child',
  `for i = 2, 5 do ARGV[i] = tonumber(ARGV[i]) end
redis.call('HSET', KEYS[1], ARGV[1], struct.pack('<dddd', ARGV[2], ARGV[3], ARGV[4], ARGV[5]))`,
);

/** The fields of a wallet. Those of child keys are text: tokens, time, spent and period, separated by spaces. */
export async function readInText(redis: RedisStore, wallet: string): Promise<Record<string, string>> {
  const fields = (await redis.script(readScript, 1, [wallet])) as string[];
  const pairs = fields.flatMap((name, i) => (i % 2 === 0 ? [[name, fields[i + 1] as string] as const] : []));
  return Object.fromEntries(pairs);
}

/** What a wallet has of a child key. */
export type ChildState = {
  readonly tokens: number;
  readonly ts: number;
  readonly spentMicros: number;
  readonly period: number;
};

/** The state of a key for which a wallet has no field. */
const NONE: ChildState = { tokens: 0, ts: 0, spentMicros: 0, period: 0 };

/** @returns null: the wallet has none */
export async function readChild(redis: RedisStore, wallet: string, keyId: string): Promise<ChildState | null> {
  const { [keyId]: text } = await readInText(redis, wallet);
  if (text === undefined) return null;
  const [tokens = 0, ts = 0, spentMicros = 0, period = 0] = text.split(' ').map(Number);
  return { tokens, ts, spentMicros, period };
}

/** Changes what a wallet has of a child key; may damage it. */
export async function writeChild(
  redis: RedisStore,
  wallet: string,
  keyId: string,
  change: Partial<Record<keyof ChildState, number | string>>,
): Promise<void> {
  const state = { ...((await readChild(redis, wallet, keyId)) ?? NONE), ...change };
  const { tokens, ts, spentMicros, period } = state;
  await redis.script(writeScript, 1, [wallet, keyId, ...[tokens, ts, spentMicros, period].map(String)]);
}
