import { Command, Redis } from 'ioredis';
import { MINIMUM_REDIS_MAJOR } from '../shared.mjs';
import {
  claimScript,
  ForeignRedis,
  foreignRedis,
  guarded,
  guardedClaim,
  INSTALLATION_KEY,
  isNews,
  ownedByAnother,
} from './installation.ts';
import type { Script } from './script.ts';

export { defineScript, type Script } from './script.ts';

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

/**
 * How often a claimed Redis is compared while it is connected: a flush leaves the connection as it is. Calls and the writer
 * compare by themselves, so this is for a process that nobody calls. Every second it used 0.07 % of a core in each of them.
 */
const CLAIM_EVERY_MS = 5_000;

/**
 * The only owner of ioredis. A connection that never resends and never queues by itself (DESIGN.md, 'Redis'): a script
 * that moves money must not run twice because a socket broke.
 *
 *   connected ──claim: whose data are these?──► ready ──a script or the next claim finds another id──┐
 *       ▲                └─ another's: drop the connection ◄──────────────────────────────────────────┘
 *       └── again after 50 … 250 ms ◄──┘
 *
 * Until `claim` is called the first time nothing is compared, and scripts run without their guard.
 */
export class RedisClient {
  readonly #redis: Redis;
  readonly #name: string;
  readonly #log: RedisLog;
  readonly #guarded = new Map<Script, Script>([[claimScript, guardedClaim]]);
  readonly #readyListeners: (() => void)[] = [];
  readonly #foreignListeners: ((error: ForeignRedis) => void)[] = [];
  #installation: string | null = null;
  /** Connected to a Redis that was compared, as far as there is something to compare. */
  #isOurs = false;
  /** Connections in a row that were made and could not be compared, or have another installation's data. */
  #refusals = 0;
  #reported: unknown = null;
  #claimTimer: NodeJS.Timeout | undefined;
  #closing = false;

  constructor(options: RedisOptions, log: RedisLog) {
    this.#name = options.name;
    this.#log = log;
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
      retryStrategy: (attempt: number) => (this.#closing ? null : Math.min(50 * (attempt + this.#refusals), 250)),
    });
    // ioredis reports every failed attempt; one line when the state changes is enough for a log.
    this.#redis.on('error', (error: Error) => this.#report(error));
    this.#redis.on('ready', () => void this.#onConnected());
    this.#redis.on('close', () => {
      this.#isOurs = false;
    });
  }

  /** Connects, or fails with the reason: at start an operator wants the error, not a silent retry. */
  async connect(): Promise<void> {
    await this.#redis.connect();
  }

  /**
   * From now on this Redis is the installation's: compared now, with every script, every five seconds, and at each
   * reconnection before it counts as ready. One without an id becomes ours, with whatever is in it (ledger/ownership.ts looks
   * at that when a process starts).
   *
   * @throws ForeignRedis when it has another installation's data
   */
  async claim(installation: string): Promise<void> {
    this.#installation = installation;
    await this.#compare(installation);
    this.#claimTimer ??= setInterval(() => void this.#compareAgain(installation), CLAIM_EVERY_MS);
    this.#claimTimer.unref();
  }

  /** Reads first: a Redis that has our id and refuses writes for now (a full disk, too few replicas) is still ours. */
  async #compare(installation: string): Promise<void> {
    const owner = await this.#send('get', [INSTALLATION_KEY]);
    if (owner === null) await this.#runGuarded(claimScript, 0, []);
    else if (owner !== installation) throw ownedByAnother(String(owner), installation);
  }

  async #compareAgain(installation: string): Promise<void> {
    try {
      if (this.ready) await this.#compare(installation);
    } catch (error) {
      // Anything else is seen by whoever runs the next command.
      if (error instanceof ForeignRedis) this.#refuse(error);
    }
  }

  /** Calls `listener` each time the connection is made, also the first. */
  onReady(listener: () => void): void {
    this.#readyListeners.push(listener);
  }

  /** Calls `listener` each time the Redis we are connected to, or connect to, turns out to be another installation's. */
  onForeign(listener: (error: ForeignRedis) => void): void {
    this.#foreignListeners.push(listener);
  }

  get ready(): boolean {
    return this.#isOurs && this.#redis.status === 'ready';
  }

  /** Runs a command. Rejects with `RedisNotSent` when it was certainly not sent. */
  command(name: string, args: readonly RedisArg[]): Promise<unknown> {
    return this.ready ? this.#send(name, args) : Promise.reject(new RedisNotSent());
  }

  #send(name: string, args: readonly RedisArg[]): Promise<unknown> {
    const command = new Command(name, args as RedisArg[], { replyEncoding: 'utf8' });
    return this.#redis.sendCommand(command) as Promise<unknown>;
  }

  /** Runs a script by its digest, if the data are ours: see `claim`. */
  async script(script: Script, numberOfKeys: number, keysAndArgs: readonly RedisArg[]): Promise<unknown> {
    if (!this.ready) throw new RedisNotSent();
    if (this.#installation === null) return this.#loadedOnDemand(script, [String(numberOfKeys), ...keysAndArgs]);
    try {
      return await this.#runGuarded(script, numberOfKeys, keysAndArgs);
    } catch (error) {
      if (error instanceof ForeignRedis) this.#refuse(error);
      throw error;
    }
  }

  async #runGuarded(script: Script, numberOfKeys: number, keysAndArgs: readonly RedisArg[]): Promise<unknown> {
    const installation = this.#installation as string;
    const keys = keysAndArgs.slice(0, numberOfKeys);
    const args = keysAndArgs.slice(numberOfKeys);
    try {
      return await this.#loadedOnDemand(this.#guardedOf(script), [
        ...[String(numberOfKeys + 1), ...keys, INSTALLATION_KEY],
        ...[...args, installation],
      ]);
    } catch (error) {
      throw (error instanceof Error && foreignRedis(error.message, installation)) || error;
    }
  }

  #guardedOf(script: Script): Script {
    const known = this.#guarded.get(script);
    if (known !== undefined) return known;
    const made = guarded(script);
    this.#guarded.set(script, made);
    return made;
  }

  /**
   * An unknown digest (a Redis that restarted or was flushed) means that nothing was carried out: the script is loaded and
   * run again, once.
   */
  async #loadedOnDemand(script: Script, rest: readonly RedisArg[]): Promise<unknown> {
    try {
      return await this.#send('evalsha', [script.sha, ...rest]);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      await this.#send('script', ['LOAD', script.source]);
      return await this.#send('evalsha', [script.sha, ...rest]);
    }
  }

  async #onConnected(): Promise<void> {
    this.#isOurs = false;
    try {
      if (this.#installation !== null) await this.#compare(this.#installation);
    } catch (error) {
      this.#refusals++;
      this.#report(error);
      if (error instanceof ForeignRedis) this.#tell(error);
      // Unless the question failed because the connection ended; then the next one is on its way.
      if (this.#redis.status === 'ready') this.#redis.disconnect(true);
      return;
    }
    this.#isOurs = true;
    this.#refusals = 0;
    if (this.#reported !== null) this.#log.warn({ redis: this.#name }, 'redis connection is back');
    this.#reported = null;
    for (const listener of this.#readyListeners) listener();
  }

  /** Nothing more goes there. Somebody may flush it, or the right one may be back behind its name: so it is tried again. */
  #refuse(error: ForeignRedis): void {
    if (!this.ready) return;
    this.#isOurs = false;
    this.#report(error);
    this.#redis.disconnect(true);
    this.#tell(error);
  }

  #tell(error: ForeignRedis): void {
    for (const listener of this.#foreignListeners) listener(error);
  }

  #report(error: unknown): void {
    if (this.#closing || !isNews(error, this.#reported)) return;
    this.#reported = error;
    this.#log.warn({ err: error, redis: this.#name }, 'redis connection lost or refused');
  }

  async ping(): Promise<void> {
    await this.command('ping', []);
  }

  /** Sends what is under way, then closes. Safe to call at any state. */
  async close(): Promise<void> {
    this.#closing = true;
    clearInterval(this.#claimTimer);
    if (this.ready) {
      await this.#redis.quit().catch(() => this.#redis.disconnect());
    } else {
      this.#redis.disconnect();
    }
  }

  /** Drops the connection at once. */
  destroy(): void {
    this.#closing = true;
    clearInterval(this.#claimTimer);
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
  if (Number.parseInt(version, 10) < MINIMUM_REDIS_MAJOR) {
    throw new Error(`redis ${version} is too old: ${MINIMUM_REDIS_MAJOR}.0 or newer is needed`);
  }
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
  if (error instanceof RedisNotSent || error instanceof ForeignRedis) return true;
  if (!(error instanceof Error)) return false;
  return /^(Command timed out|Connection is closed|Stream isn't writeable|Reached the max retries|LOADING|MASTERDOWN|READONLY)/.test(
    error.message,
  );
}
