import { createHash } from 'node:crypto';
import { Command, Redis } from 'ioredis';

export type RedisOptions = {
  readonly url: string;
  readonly name: string;
  /** A command without a reply for this long fails; whether it was carried out is then unknown. */
  readonly commandTimeoutMs: number;
};

export type RedisLog = { warn(fields: object, message: string): void };

/** What a script or command is given. Numbers must be sent as text: the encoder then has one case. */
export type RedisArg = string | Buffer;

/** Thrown when a command was certainly not sent. Any other failure means: it may have been carried out. */
export class RedisNotSent extends Error {
  constructor() {
    super('redis is not connected');
    this.name = 'RedisNotSent';
  }
}

/** A Lua script with its digest, loaded from a file beside the code. */
export type Script = { readonly name: string; readonly source: string; readonly sha: string };

export function defineScript(name: string, source: string): Script {
  return { name, source, sha: createHash('sha1').update(source).digest('hex') };
}

/**
 * The only owner of ioredis. A connection that never resends and never queues by itself (DESIGN.md, 'Redis'): a script
 * that moves money must not run twice because a socket broke.
 */
export class RedisClient {
  readonly #redis: Redis;
  #closing = false;

  constructor(options: RedisOptions, log: RedisLog) {
    this.#redis = new Redis(options.url, {
      connectionName: options.name,
      lazyConnect: true,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      enableAutoPipelining: false,
      commandTimeout: options.commandTimeoutMs,
      connectTimeout: 2_000,
      noDelay: true,
      // A connection that stays silent is given up: behind it may be a host that is gone.
      socketTimeout: options.commandTimeoutMs * 3,
      // A primary that became a replica: look for the new one.
      reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
      // As the connection for batches does (script-connection.ts).
      retryStrategy: (attempt: number) => (this.#closing ? null : Math.min(50 * attempt, 250)),
    });
    // ioredis reports every failed attempt; one line when the state changes is enough for a log.
    let reported = false;
    this.#redis.on('error', (error: Error) => {
      if (!reported && !this.#closing)
        log.warn({ err: error, redis: options.name }, 'redis connection lost or refused');
      reported = true;
    });
    this.#redis.on('ready', () => {
      if (reported) log.warn({ redis: options.name }, 'redis connection is back');
      reported = false;
    });
  }

  /** Connects, or fails with the reason: at start an operator wants the error, not a silent retry. */
  async connect(): Promise<void> {
    await this.#redis.connect();
  }

  /** Calls `listener` each time the connection is made, also the first. */
  onReady(listener: () => void): void {
    this.#redis.on('ready', listener);
  }

  get ready(): boolean {
    return this.#redis.status === 'ready';
  }

  /** Runs a command. Rejects with `RedisNotSent` when it was certainly not sent. */
  command(name: string, args: readonly RedisArg[]): Promise<unknown> {
    if (!this.ready) return Promise.reject(new RedisNotSent());
    const command = new Command(name, args as RedisArg[], { replyEncoding: 'utf8' });
    return this.#redis.sendCommand(command) as Promise<unknown>;
  }

  /** Runs a script by its digest. */
  script(script: Script, numberOfKeys: number, keysAndArgs: readonly RedisArg[]): Promise<unknown> {
    const args = [script.sha, String(numberOfKeys), ...keysAndArgs];
    return this.#loadedOnDemand(script, () => this.command('evalsha', args));
  }

  /**
   * An unknown digest (a Redis that restarted or was flushed) means that nothing was carried out: the script is loaded and
   * run again, once.
   */
  async #loadedOnDemand(script: Script, run: () => Promise<unknown>): Promise<unknown> {
    try {
      return await run();
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      await this.command('script', ['LOAD', script.source]);
      return await run();
    }
  }

  async ping(): Promise<void> {
    await this.command('ping', []);
  }

  /** Sends what is under way, then closes. Safe to call at any state. */
  async close(): Promise<void> {
    this.#closing = true;
    if (this.ready) {
      await this.#redis.quit().catch(() => this.#redis.disconnect());
    } else {
      this.#redis.disconnect();
    }
  }

  /** Drops the connection at once. */
  destroy(): void {
    this.#closing = true;
    this.#redis.disconnect();
  }
}

/**
 * Refuses a Redis that evicts: a wallet or a hold that vanishes is money that vanishes.
 *
 * @returns what an operator should be warned about; throws on what must not be run with
 */
export async function checkRedisPolicy(client: RedisClient): Promise<string[]> {
  const info = String(await client.command('info', []));
  const field = (name: string): string | undefined => new RegExp(`^${name}:(.*?)\r?$`, 'm').exec(info)?.[1];
  const version = field('redis_version') ?? '';
  if (Number.parseInt(version, 10) < 7) throw new Error(`redis ${version} is too old: 7.0 or newer is needed`);
  const policy = field('maxmemory_policy');
  if (policy !== undefined && policy !== 'noeviction') {
    throw new Error(`redis has maxmemory-policy ${policy}: it would evict money. Set it to noeviction.`);
  }
  const warnings: string[] = [];
  if (field('aof_enabled') === '0') {
    warnings.push('redis has AOF off: a restart loses open calls and usage not yet in Postgres. Set appendonly yes.');
  }
  return warnings;
}

/** Whether the key of a command holds another type: somebody else has written it. */
export const isWrongType = (error: unknown): boolean => error instanceof Error && /WRONGTYPE/.test(error.message);

/** Whether the error says 'Redis is away, or did not answer in time' rather than 'the command is wrong'. */
export function isRedisUnavailable(error: unknown): boolean {
  if (error instanceof RedisNotSent) return true;
  if (!(error instanceof Error)) return false;
  return /^(Command timed out|Connection is closed|Stream isn't writeable|Reached the max retries|LOADING|MASTERDOWN|READONLY)/.test(
    error.message,
  );
}
