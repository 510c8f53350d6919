import { Command, Redis } from 'ioredis';
import { everyBeat } from './beat.ts';
import { ForeignRedis, INSTALLATION_KEY, isNews } from './installation.ts';
import { OwnedStore } from './owned-store.ts';
import { addressOf } from './redis-node.ts';
import { type RedisArg, RedisNotSent } from './redis-store.ts';
import { StartRefused } from './start-refused.ts';

export { INSTALLATION_KEY } from './installation.ts';
export { byStore, RedisNotCarriedOut, RedisNotSent, type RedisStore } from './redis-store.ts';
export { defineScript, type Script } from './script.ts';

type RedisOptions = {
  readonly url: string;
  readonly name: string;
  /** A command that has no reply after this time fails; whether Redis carried it out is then unknown. */
  readonly commandTimeoutMs: number;
};

export type RedisLog = { warn(fields: object, message: string): void };

/**
 * The only code that uses ioredis. This client never resends or queues a command by itself (docs/design.md, 'Redis'): a script that
 * moves money must not run twice because a socket broke.
 *
 *   connected ──claim: whose data are these?──► ready ──a script or the next check finds another id──┐
 *       ▲                └─ another's: drop the connection ◄─────────────────────────────────────────┘
 *       └── again after 50 … 250 ms ◄──┘
 *
 * Tested by test/platform/installation.test.ts and test/integration/redis-away.test.ts.
 */
export class RedisClient extends OwnedStore {
  /** `host:port` of the server. */
  readonly address: string;
  readonly #redis: Redis;
  readonly #name: string;
  readonly #log: RedisLog;
  /**
   * Number of consecutive connections whose id could not be compared or was another installation's. It lengthens the pause before
   * the next.
   */
  #refusals = 0;
  #reported: unknown = null;
  #endComparing: (() => void) | null = null;
  #closing = false;

  constructor(options: RedisOptions, log: RedisLog) {
    super(INSTALLATION_KEY);
    this.address = addressOf(options.url);
    this.#name = options.name;
    this.#log = log;
    // The type argument is the default. Left to be inferred, it would take a tenth of the type check of src/.
    this.#redis = new Redis<'legacy'>(options.url, {
      connectionName: options.name,
      lazyConnect: true,
      autoResendUnfulfilledCommands: false,
      maxRetriesPerRequest: 0,
      enableOfflineQueue: false,
      enableAutoPipelining: false,
      commandTimeout: options.commandTimeoutMs,
      connectTimeout: 2_000,
      noDelay: true,
      // A connection on which Redis stays silent is dropped: its host may be gone.
      socketTimeout: options.commandTimeoutMs * 3,
      // READONLY: the primary has become a replica. A new connection finds the new primary.
      reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
      // The same pauses as those of the connection for batches (script-connection.ts).
      retryStrategy: (attempt: number) => (this.#closing ? null : Math.min(50 * (attempt + this.#refusals), 250)),
    });
    // ioredis reports every failed attempt; one log line when the state changes is enough.
    this.#redis.on('error', (error: Error) => this.#report(error));
    this.#redis.on('ready', () => void this.#onConnected());
    this.#redis.on('close', () => {
      this.isOurs = false;
    });
  }

  /** Connects, or rejects with the reason: at start, an operator wants to see the error instead of a silent retry. */
  async connect(): Promise<void> {
    try {
      await this.#redis.connect();
    } catch (error) {
      // ioredis only says 'Connection is closed.' here; the reason was in an earlier event.
      const reason = this.#reported instanceof Error ? this.#reported : (error as Error);
      throw new StartRefused(`cannot connect to redis at ${this.address}: ${reason.message}`, { cause: reason });
    }
  }

  override async claim(installation: string): Promise<void> {
    await super.claim(installation);
    this.#endComparing ??= everyBeat(() => {
      if (this.ready) void this.compareOwner(installation);
    });
  }

  get ready(): boolean {
    return this.isOurs && this.#redis.status === 'ready';
  }

  protected send(name: string, args: readonly RedisArg[]): Promise<unknown> {
    const command = new Command(name, args as RedisArg[], { replyEncoding: 'utf8' });
    this.#gather();
    return this.#redis.sendCommand(command) as Promise<unknown>;
  }

  /** All that one turn of the event loop sends leaves in one write. Readers ask about each shard, and a write takes more CPU than its command. */
  #gather(): void {
    const { stream } = this.#redis;
    if (stream === undefined || stream.writableCorked > 0) return;
    stream.cork();
    process.nextTick(() => stream.uncork());
  }

  async #onConnected(): Promise<void> {
    this.isOurs = false;
    try {
      if (this.installation !== null) await this.scripts.compare(this.installation);
    } catch (error) {
      this.#refusals++;
      this.#report(error);
      if (error instanceof ForeignRedis) this.tellForeign(error);
      // If the comparison failed because the connection ended, ioredis is already making the next one.
      if (this.#redis.status === 'ready') this.#redis.disconnect(true);
      return;
    }
    this.#refusals = 0;
    if (this.#reported !== null) this.#log.warn({ redis: this.#name, node: this.address }, 'redis connection is back');
    this.#reported = null;
    this.becomeReady();
  }

  /** Stops using this Redis, but reconnects: somebody may flush it, or its address may lead to the right Redis again. */
  protected refuse(error: ForeignRedis): void {
    if (!this.ready) return;
    this.isOurs = false;
    this.#report(error);
    this.#redis.disconnect(true);
    this.tellForeign(error);
  }

  #report(error: unknown): void {
    if (this.#closing || !isNews(error, this.#reported)) return;
    this.#reported = error;
    this.#log.warn({ err: error, redis: this.#name, node: this.address }, 'redis connection lost or refused');
  }

  async ping(): Promise<void> {
    await this.command('ping', []);
  }

  /** Waits for the commands under way, then closes. Safe to call in any state. */
  async close(): Promise<void> {
    this.#closing = true;
    this.#endComparing?.();
    if (this.ready) {
      await this.#redis.quit().catch(() => this.#redis.disconnect());
    } else {
      this.#redis.disconnect();
    }
  }

  /** Drops the connection immediately. */
  destroy(): void {
    this.#closing = true;
    this.#endComparing?.();
    this.#redis.disconnect();
  }
}

/** Whether a command failed because its key has another type. Tollgate never writes that type there, so somebody else did. */
export const isWrongType = (error: unknown): boolean => error instanceof Error && /WRONGTYPE/.test(error.message);

/** Whether Redis did not answer in time. It is unknown whether the command was carried out. */
export const isCommandTimeout = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('Command timed out');

/** Whether the error means that Redis is unavailable or slow, and not that the command is wrong. */
export function isRedisUnavailable(error: unknown): boolean {
  if (error instanceof RedisNotSent || error instanceof ForeignRedis) return true;
  if (!(error instanceof Error)) return false;
  return /^(Command timed out|Connection is closed|Stream isn't writeable|Reached the max retries|LOADING|MASTERDOWN|READONLY)/.test(
    error.message,
  );
}
