import { GuardedScripts } from './guarded-scripts.ts';
import { claimScript, ForeignRedis } from './installation.ts';
import { type RedisArg, RedisNotSent, type RedisStore } from './redis-store.ts';
import type { Script } from './script.ts';

/**
 * The common part of one server (`RedisClient`) and one shard of a cluster (`ShardClient`): nothing is sent while their data are
 * not ours, and listeners are told when that changes.
 */
export abstract class OwnedStore implements RedisStore {
  /** A script on a server, or on one shard of a cluster, may name all its keys. */
  readonly isCluster = false;
  protected readonly scripts: GuardedScripts;
  /** Null before `claim`: until then no id is compared, and scripts run without their guard. */
  protected installation: string | null = null;
  /** True when there is a connection, and the data have our installation's id. */
  protected isOurs = false;
  readonly #readyListeners: (() => void)[] = [];
  readonly #foreignListeners: ((error: ForeignRedis) => void)[] = [];

  /** @param installationKey  the Redis key that has the installation's id */
  constructor(installationKey: string) {
    this.scripts = new GuardedScripts(installationKey, (name, args) => this.send(name, args));
  }

  abstract get ready(): boolean;

  /** Sends a command, even if the data are not ours. */
  protected abstract send(name: string, args: readonly RedisArg[]): Promise<unknown>;

  /** Stops using the data until they are ours again, and tells the listeners. */
  protected abstract refuse(error: ForeignRedis): void;

  shard(): this {
    return this;
  }

  onReady(listener: () => void): void {
    this.#readyListeners.push(listener);
  }

  onForeign(listener: (error: ForeignRedis) => void): void {
    this.#foreignListeners.push(listener);
  }

  command(name: string, args: readonly RedisArg[]): Promise<unknown> {
    return this.ready ? this.send(name, args) : Promise.reject(new RedisNotSent());
  }

  async script(script: Script, numberOfKeys: number, keysAndArgs: readonly RedisArg[]): Promise<unknown> {
    if (!this.ready) throw new RedisNotSent();
    try {
      return await this.scripts.run(this.installation, script, numberOfKeys, keysAndArgs);
    } catch (error) {
      if (error instanceof ForeignRedis) this.refuse(error);
      throw error;
    }
  }

  async confirmOwner(): Promise<void> {
    await this.script(claimScript, 0, []);
  }

  /**
   * Binds this store to an installation. From now on the id in Redis is compared: at once, with every script, every five seconds,
   * and after each reconnection before the store counts as ready. A Redis without an id becomes ours, with all its data;
   * ledger/ownership.ts judges those data when a process starts.
   *
   * @throws ForeignRedis when Redis has another installation's data
   */
  async claim(installation: string): Promise<void> {
    this.installation = installation;
    await this.scripts.compare(installation);
  }

  /**
   * Compares the id of data that were ours, because FLUSHALL does not end the connection. It runs on each beat, and serves
   * processes without calls: after FLUSHALL the writer's scripts compare the id, and so do those that load a wallet or a key for a
   * call.
   */
  protected async compareOwner(installation: string): Promise<void> {
    try {
      await this.scripts.compare(installation);
    } catch (error) {
      // Any other error is ignored: the next command meets and reports it.
      if (error instanceof ForeignRedis) this.refuse(error);
    }
  }

  protected becomeReady(): void {
    this.isOurs = true;
    for (const listener of this.#readyListeners) listener();
  }

  protected tellForeign(error: ForeignRedis): void {
    for (const listener of this.#foreignListeners) listener(error);
  }
}
