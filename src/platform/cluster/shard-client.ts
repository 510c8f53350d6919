import { performance } from 'node:perf_hooks';
import { ForeignRedis } from '../installation.ts';
import { OwnedStore } from '../owned-store.ts';
import { type RedisClient, RedisNotCarriedOut, RedisNotSent } from '../redis.ts';
import { installationKey } from '../redis-keys.ts';
import type { RedisArg } from '../redis-store.ts';
import { slotOf } from './hash-tags.ts';
import { hostOf, readRefusal } from './slots.ts';

/** The cluster, seen from one of its shards. */
type ShardHost = {
  nodeAt(address: string): RedisClient;
  /** Asks the nodes again which slots they have. */
  lookAgain(): void;
  /** The shard has another node than before. */
  moved(shard: ShardClient, from: string): void;
  /** How long a command may wait until some node has its slot. */
  readonly commandTimeoutMs: number;
};

/** Pause before a command is sent again after a node refused it because its slot is moving, or because no node has it. */
const AGAIN_MS = 20;
/** Pause before the installation's id is compared again after a failure. */
const VERIFY_AGAIN_MS = 100;
/** How often a command follows MOVED at once. Nodes that disagree could send it back and forth for ever. */
const MAX_MOVES = 5;

/**
 * One shard of a cluster, treated as a separate Redis. All its commands go to the node that has its slot, whatever their keys: that
 * node also answers INFO, TIME and SCAN.
 *
 *   waiting ──its node answers──► comparing: whose data are these? ──► ready ──the node is away, or another has the slot──┐
 *      ▲                              └─ another's: again in 5 s                                                          │
 *      └──────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
 *
 * A command that a node refused because of its slot was not carried out. It is sent again to the right node, for at most the
 * command timeout, and then rejects with `RedisNotCarriedOut`. A command without a reply is never sent again.
 */
export class ShardClient extends OwnedStore {
  readonly slot: number;
  readonly #host: ShardHost;
  #node: RedisClient | null = null;
  #address = '';
  #isVerifying = false;
  #movedAt = Number.NEGATIVE_INFINITY;
  /** Counts the nodes and connections of this shard: a comparison made with an earlier one proves nothing. */
  #connections = 0;

  constructor(tag: string, host: ShardHost) {
    super(installationKey(tag));
    this.slot = slotOf(`{${tag}}`);
    this.#host = host;
  }

  /** The client of the node that has this shard; null before the first look. */
  get node(): RedisClient | null {
    return this.#node;
  }

  /** When a node last named another as the node of the slot (`performance.now()`). */
  get movedAt(): number {
    return this.#movedAt;
  }

  /** `host:port` of that node. */
  get address(): string {
    return this.#address;
  }

  /** The cluster calls this with the node that has the slot. */
  moveTo(address: string): void {
    const node = this.#host.nodeAt(address);
    if (node === this.#node) return;
    const from = this.#address;
    this.#node = node;
    this.#address = address;
    if (from !== '' && from !== address) this.#host.moved(this, from);
    if (node.ready) this.nodeIsReady();
    else this.isOurs = false;
  }

  /** The node has connected. */
  nodeIsReady(): void {
    this.isOurs = false;
    this.#connections++;
    if (this.installation === null) this.becomeReady();
    else if (!this.#isVerifying) void this.#verify(this.installation);
  }

  /**
   * Compares until nothing changes meanwhile. One comparison runs at a time: each may find out about another node, and begin one.
   */
  async #verify(installation: string): Promise<void> {
    this.#isVerifying = true;
    for (let connection = -1; connection !== this.#connections; ) {
      connection = this.#connections;
      try {
        await this.scripts.compare(installation);
      } catch (error) {
        if (error instanceof ForeignRedis) this.tellForeign(error);
        else this.#verifyLater();
        this.#isVerifying = false;
        return;
      }
    }
    this.#isVerifying = false;
    this.becomeReady();
  }

  /** The node does not know its slots yet, or has too few replicas to write. A node that is away announces its return. */
  #verifyLater(): void {
    setTimeout(() => {
      if (!this.isOurs && !this.#isVerifying && this.#node?.ready) this.nodeIsReady();
    }, VERIFY_AGAIN_MS).unref();
  }

  /** Compares the installation's id again, because FLUSHALL does not end the connection. */
  async compareAgain(): Promise<void> {
    if (this.installation === null || !this.#node?.ready) return;
    if (!this.isOurs) {
      if (!this.#isVerifying) this.nodeIsReady();
      return;
    }
    await this.compareOwner(this.installation);
  }

  get ready(): boolean {
    return this.isOurs && (this.#node?.ready ?? false);
  }

  protected async send(name: string, args: readonly RedisArg[]): Promise<unknown> {
    const until = performance.now() + this.#host.commandTimeoutMs;
    for (let moves = 0; ; ) {
      const node = this.#node;
      if (node === null) throw new RedisNotSent();
      try {
        return await node.command(name, args);
      } catch (error) {
        const refusal = error instanceof Error ? readRefusal(error.message, hostOf(this.#address)) : null;
        if (refusal === null) throw error;
        const followed = this.follow(refusal.address) && moves++ < MAX_MOVES;
        if (performance.now() > until) throw new RedisNotCarriedOut((error as Error).message);
        if (!followed) await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
      }
    }
  }

  /** A node has said where the slot is. @returns whether a command can be sent there now */
  follow(address: string | null): boolean {
    this.#host.lookAgain();
    if (address === null) return false;
    // Two nodes that each name the other must not keep this process busy.
    const now = performance.now();
    if (address !== this.#address && now - this.#movedAt < AGAIN_MS) return false;
    if (address !== this.#address) this.#movedAt = now;
    this.moveTo(address);
    return this.#node?.ready ?? false;
  }

  /** Stops using this shard until its data are ours again. */
  protected refuse(error: ForeignRedis): void {
    this.isOurs = false;
    this.tellForeign(error);
  }
}
