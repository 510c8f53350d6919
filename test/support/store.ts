import { BatchEncoder } from '../../src/admission/batch-encoder.ts';
import type { Command, CommandHost } from '../../src/admission/commands.ts';
import { EncodedKeys } from '../../src/admission/encoded-keys.ts';
import type { HoldOwner } from '../../src/admission/hold-owners.ts';
import { readReply } from '../../src/admission/reply.ts';
import { batchScript } from '../../src/admission/scripts.ts';
import { RedisClient } from '../../src/platform/redis.ts';
import { RedisKeys } from '../../src/platform/redis-keys.ts';
import { ScriptConnection } from '../../src/platform/script-connection.ts';
import { calledFrom, withCallerStack } from './caller-stack.ts';
import { startTestRedis, type TestRedis } from './stores.ts';
import { until } from './wait.ts';

export const SHARDS = 2;
export const QUIET = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {}, fatal: () => {} };

/** A connection reads its limit each time, so a test may set up with a long one and then shorten it. */
export type Limits = { commandTimeoutMs: number };

/** A connection for batches, to be connected and closed by the test. */
export function batchesOf(url: string, limits: Limits, script = batchScript): ScriptConnection {
  const options = {
    url,
    name: 'batches',
    script,
    get commandTimeoutMs() {
      return limits.commandTimeoutMs;
    },
  };
  return new ScriptConnection(options, QUIET);
}

const REPLIES = `local replies = {}
  for at, command in ipairs(cjson.decode(ARGV[1])) do replies[at] = redis.call(unpack(command)) end
  return replies`;

export type StoredEvent = { readonly usageId: string; readonly hold: string; readonly settlement: string };
type Entry = readonly [id: string, fields: readonly string[]];

export function eventsIn(entries: readonly Entry[]): StoredEvent[] {
  return entries.map(([, [, text]]) => {
    // The id, the eleven fields of the hold and those that have names, and the rest is the settlement.
    const fields = (text as string).split('\t');
    const end = 12 + fields.slice(12).findIndex((field) => !field.includes('='));
    const [hold, settlement] = [fields.slice(1, end), fields.slice(end)].map((part) => part.join('\t'));
    return { usageId: fields[0] as string, hold: hold as string, settlement: settlement as string };
  });
}

export function openIn({ kept: _, ...open }: Record<string, string>): Record<string, string> {
  return open;
}

/** A Redis that only this test file uses, with a client and the questions that tests ask. */
export class Store {
  readonly server: TestRedis;
  readonly redis: RedisClient;
  readonly batches: ScriptConnection;
  readonly keys = new RedisKeys(SHARDS);

  private constructor(server: TestRedis, redis: RedisClient, batches: ScriptConnection) {
    this.server = server;
    this.redis = redis;
    this.batches = batches;
  }

  static async open(
    commandTimeoutMs = 5_000,
    script = batchScript,
    options: Parameters<typeof startTestRedis>[0] = {},
  ): Promise<Store> {
    const server = await startTestRedis(options);
    const redis = withCallerStack(new RedisClient({ url: server.url, name: 'test', commandTimeoutMs }, QUIET));
    await redis.connect();
    const batches = batchesOf(server.url, { commandTimeoutMs }, script);
    await batches.connect();
    return new Store(server, redis, batches);
  }

  async close(): Promise<void> {
    this.redis.destroy();
    await this.batches.close();
    await this.server.release();
  }

  /** Waits until both connections are open again after the server was away: each tries again in its own time. */
  async reconnected(): Promise<void> {
    await until(() => this.redis.ready && this.batches.ready);
  }

  command(name: string, ...args: (string | number)[]): Promise<unknown> {
    return this.redis.command(name, args.map(String));
  }

  async hash(name: string): Promise<Record<string, string>> {
    return { ...((await this.command('hgetall', name)) as Record<string, string>) };
  }

  /** Redis's own time in milliseconds, which the scripts use. */
  async now(): Promise<number> {
    const [seconds, micros] = (await this.command('time')) as [string, string];
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  async loadKey(keyId: string, accountId: string, limit = 300, status = 'active'): Promise<void> {
    const name = this.keys.key(this.keys.shardOf(accountId), keyId);
    await this.command('hset', name, 'limit', limit, 'status', status);
  }

  async loadWallet(accountId: string, balance: number, fields: Record<string, number> = {}): Promise<void> {
    const extra = Object.entries(fields).flat();
    await this.command('hset', this.walletName(accountId), 'balance', balance, 'credit_seq', 1, ...extra);
  }

  walletName(accountId: string): string {
    return this.keys.wallet(this.keys.shardOf(accountId), accountId);
  }

  async balance(accountId: string): Promise<number> {
    return Number((await this.hash(this.walletName(accountId))).balance);
  }

  /** Open holds and tombstones of an account's shard. */
  open(accountId: string): Promise<Record<string, string>> {
    return this.openOf(this.keys.shardOf(accountId));
  }

  /** Open holds and tombstones of a shard, without the tombstone of no call that a lease renewal leaves there. */
  async openOf(shard: number): Promise<Record<string, string>> {
    return openIn(await this.hash(this.keys.open[shard] as string));
  }

  /** Events in the stream of an account's shard, oldest first. */
  async events(accountId: string): Promise<StoredEvent[]> {
    return this.eventsOf(this.keys.shardOf(accountId));
  }

  async eventsOf(shard: number): Promise<StoredEvent[]> {
    return eventsIn((await this.command('xrange', this.keys.usage[shard] as string, '-', '+')) as Entry[]);
  }

  /**
   * The replies to these commands at one instant, as a script gets them: a hash is a list. A command of its own for each would be a
   * write to the socket each, which costs a test of many steps most of its time.
   */
  async replies(commands: readonly (readonly string[])[]): Promise<unknown[]> {
    return (await this.command('eval', REPLIES, 0, JSON.stringify(commands))) as unknown[];
  }

  /** Sends commands in one trip, as one event-loop turn of a gateway does. */
  async run(commands: readonly Command[], host: TestHost): Promise<void> {
    const batch = new BatchEncoder();
    batch.begin(host.instance);
    for (const command of commands) command.encode(batch, host);
    const { replies } = batch;
    const here = new Error();
    const reply = await new Promise<number[]>((resolve, reject) => {
      this.batches.send(batch.end(), {
        onReply: (bytes, start, end) => {
          const numbers = readReply(bytes, start, end, replies);
          if (numbers instanceof Error) reject(numbers);
          else resolve(numbers);
        },
        onLost: (error) => reject(calledFrom(error, here)),
      });
    });
    let at = 0;
    for (const command of commands) at = command.onReply(reply, at, host);
    if (at !== reply.length) throw new Error(`commands read ${at} of ${reply.length} numbers`);
  }
}

type TestHost = CommandHost & { readonly instance: string };

/** Owner for calls whose end no test waits for. */
export const NO_OWNER: HoldOwner = { instance: '', openCalls: 0, ended: () => {} };

/** A host for commands that should find everything loaded: throws when one asks for anything else. */
export function hostOf(keys: RedisKeys, instance: string, notes: Partial<CommandHost> = {}): TestHost {
  const unexpected = (what: string) => () => {
    throw new Error(`unexpected: ${what}`);
  };
  const host = {
    keys,
    encodedKeys: new EncodedKeys(keys),
    instance,
    admitted: () => NO_OWNER,
    reloadAndRetry: unexpected('not loaded'),
    cancel: unexpected('cancel'),
    retrySettlement: unexpected('retry'),
    retryRefused: unexpected('refused'),
    mended: unexpected('mended'),
    foundDamage: unexpected('damage'),
    foundUnknownCode: unexpected('an unknown code'),
    settledElsewhere: () => {},
  };
  return { ...host, ...notes };
}
