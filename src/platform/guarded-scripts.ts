import { claimScript, foreignRedis, guarded, guardedClaim, ownedByAnother } from './installation.ts';
import type { RedisArg } from './redis-store.ts';
import type { Script } from './script.ts';

type Send = (name: string, args: readonly RedisArg[]) => Promise<unknown>;

/** Runs scripts by their digests, each with a comparison of the installation's id in the same step (`GUARD` in installation.ts). */
export class GuardedScripts {
  readonly #installationKey: string;
  readonly #send: Send;
  readonly #guarded = new Map<Script, Script>([[claimScript, guardedClaim]]);

  /** @param installationKey  the Redis key that has the id */
  constructor(installationKey: string, send: Send) {
    this.#installationKey = installationKey;
    this.#send = send;
  }

  /**
   * Reads the id before claiming: a Redis that has our id but cannot write now (a full disk, too few replicas) is still ours.
   *
   * @throws ForeignRedis when Redis has another installation's data
   */
  async compare(installation: string): Promise<void> {
    const owner = await this.#send('get', [this.#installationKey]);
    if (owner === null) await this.run(installation, claimScript, 0, []);
    else if (owner !== installation) throw ownedByAnother(String(owner), installation);
  }

  /** @param installation null: no id is known yet, so none is compared */
  async run(
    installation: string | null,
    script: Script,
    numberOfKeys: number,
    keysAndArgs: readonly RedisArg[],
  ): Promise<unknown> {
    if (installation === null) return this.#loadedOnDemand(script, [String(numberOfKeys), ...keysAndArgs]);
    const keys = keysAndArgs.slice(0, numberOfKeys);
    const args = keysAndArgs.slice(numberOfKeys);
    try {
      return await this.#loadedOnDemand(this.#guardedOf(script), [
        String(numberOfKeys + 1),
        ...keys,
        this.#installationKey,
        ...args,
        installation,
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
   * Runs a script by its digest. If Redis does not know the digest (it restarted, or somebody ran SCRIPT FLUSH), it has carried out
   * nothing: the script is loaded and run again, once.
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
}
