import { performance } from 'node:perf_hooks';
import { everyBeat } from '../beat.ts';
import type { ForeignRedis } from '../installation.ts';
import { RedisClient, type RedisLog, RedisNotSent } from '../redis.ts';
import { SHARED_TAG } from '../redis-keys.ts';
import type { RedisArg, RedisStore } from '../redis-store.ts';
import type { Script } from '../script.ts';
import { StartRefused } from '../start-refused.ts';
import { parseClusterUrl } from './cluster-url.ts';
import { slotOf } from './hash-tags.ts';
import { ShardClient } from './shard-client.ts';
import { ShardMoves } from './shard-moves.ts';
import { hostOf, readSlotOwners, type SlotOwners } from './slots.ts';

type RedisClusterOptions = {
  /** `redis[s]+cluster://…`, see cluster-url.ts. */
  readonly url: string;
  readonly name: string;
  readonly commandTimeoutMs: number;
  /** The hash tag of each shard. */
  readonly tags: readonly string[];
};

/** How often the slots are read while all shards have a node that answers: an operator may have moved some. */
const LOOK_EVERY_MS = 5_000;
/** The same while a shard has no node: its node may have been replaced by a replica. */
const LOOK_OFTEN_MS = 100;
/** How long it may take until all nodes know that a slot has moved. */
const HEARSAY_MS = 1_000;

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
const incomplete = (what: string): StartRefused =>
  new StartRefused(`the Redis Cluster is not complete, and a start needs a master for every slot: ${what}`);

/** What one node has said about the slots. */
type Look = { readonly epoch: number; readonly owners: SlotOwners };

/**
 * A Redis Cluster: one `RedisClient` for each master, and for each shard a `ShardClient` that knows its node. Each shard counts as a
 * Redis of its own, so a node that is away stops its shards and no others.
 *
 *   CLUSTER SLOTS ──► which node has which slot ──► each ShardClient: its node
 *        ▲   every 5 s; at once after MOVED, and ten times a second while a node is away
 *
 * The cluster client of ioredis is not used: it sends a command again after its connection broke, unless it is told not to. The
 * batches (`ClusterBatches`) need the slots as well, and two maps of the slots would disagree in a failover.
 *
 * Tested by test/platform/cluster/redis-cluster.test.ts.
 */
export class RedisCluster implements RedisStore {
  readonly shards: readonly ShardClient[];
  /** By slot: the shards, and the client for keys that belong to no shard. */
  readonly #bySlot: ReadonlyMap<number, ShardClient>;
  readonly #options: RedisClusterOptions;
  readonly #log: RedisLog;
  readonly #urlOf: (address: string) => string;
  readonly #seeds: readonly string[];
  readonly #nodes = new Map<string, RedisClient>();
  readonly #moves: ShardMoves;
  #owners: SlotOwners = [];
  #timer: NodeJS.Timeout | null = null;
  #endComparing: (() => void) | null = null;
  #looking: Promise<void> | null = null;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #isClosed = false;

  constructor(options: RedisClusterOptions, log: RedisLog) {
    this.#options = options;
    this.#log = log;
    this.#moves = new ShardMoves(log);
    const { seeds, urlOf } = parseClusterUrl(options.url);
    this.#seeds = seeds;
    this.#urlOf = urlOf;
    const host = {
      nodeAt: (address: string) => this.#nodeAt(address),
      lookAgain: () => this.#lookSoon(0),
      moved: (shard: ShardClient, from: string) => this.#moves.add(this.shards.indexOf(shard), from, shard.address),
      commandTimeoutMs: options.commandTimeoutMs,
    };
    this.shards = options.tags.map((tag) => new ShardClient(tag, host));
    // The shared keys come first: every installation has their tag, whatever its number of shards, so its id is compared and
    // claimed first.
    const all = [new ShardClient(SHARED_TAG, host), ...this.shards];
    this.#bySlot = new Map(all.map((shard) => [shard.slot, shard]));
  }

  /** Connects to every master, or rejects with the reason. Later, nodes may come and go. */
  async connect(): Promise<void> {
    const failures: unknown[] = [];
    for (const seed of this.#seeds) {
      try {
        await this.#connectTo(seed);
        break;
      } catch (error) {
        failures.push(error);
        this.#forget(seed);
      }
    }
    if (failures.length === this.#seeds.length) {
      throw new StartRefused(
        `no node of the Redis Cluster that REDIS_URL names answers: ${failures.map(textOf).join('; ')}`,
      );
    }
    const look = await this.#askFirst(this.#nodes.keys().next().value as string);
    const without = look.owners.indexOf(null);
    if (without >= 0) throw incomplete(`no node has slot ${without}. See redis-cli --cluster check`);
    const masters = Array.from(new Set(look.owners as readonly string[]));
    await Promise.all(masters.map((address) => this.#connectToMaster(address)));
    this.#apply(look);
    this.#lookSoon(LOOK_EVERY_MS);
  }

  async #askFirst(address: string): Promise<Look> {
    try {
      return await this.#askNode(address);
    } catch (error) {
      throw new StartRefused(`REDIS_URL begins with redis+cluster://, but ${address} says: ${textOf(error)}`);
    }
  }

  async #connectToMaster(address: string): Promise<void> {
    try {
      await this.#connectTo(address);
    } catch (error) {
      throw incomplete(
        `a master is away (${textOf(error)}). Start it again, or wait until a replica has taken its place`,
      );
    }
  }

  async #connectTo(address: string): Promise<void> {
    if (this.#nodes.get(address)?.ready) return;
    this.#forget(address);
    const node = this.#make(address);
    await node.connect();
  }

  #make(address: string): RedisClient {
    const { name, commandTimeoutMs } = this.#options;
    const node = new RedisClient({ url: this.#urlOf(address), name, commandTimeoutMs }, this.#log);
    this.#nodes.set(address, node);
    node.onReady(() => {
      for (const shard of this.#bySlot.values()) if (shard.node === node) shard.nodeIsReady();
    });
    return node;
  }

  /** The client of a node, which connects by itself if it is new. */
  #nodeAt(address: string): RedisClient {
    const known = this.#nodes.get(address);
    if (known !== undefined) return known;
    const node = this.#make(address);
    // The client logs why it cannot connect, and keeps trying.
    if (!this.#isClosed) node.connect().catch(() => {});
    return node;
  }

  #forget(address: string): void {
    this.#nodes.get(address)?.destroy();
    this.#nodes.delete(address);
  }

  /** Binds every shard to an installation, like `OwnedStore.claim`. @throws ForeignRedis */
  async claim(installation: string): Promise<void> {
    for (const shard of this.#bySlot.values()) await shard.claim(installation);
    this.#endComparing ??= everyBeat(() => {
      for (const shard of this.#bySlot.values()) void shard.compareAgain();
    });
  }

  readonly isCluster = true;

  shard(shard: number): ShardClient {
    return this.shards[shard] as ShardClient;
  }

  /** The shards of each node that has any, by the node's address. */
  byNode(): ReadonlyMap<string, readonly ShardClient[]> {
    const byNode = new Map<string, ShardClient[]>();
    for (const shard of this.shards) {
      const known = byNode.get(shard.address);
      if (known === undefined) byNode.set(shard.address, [shard]);
      else known.push(shard);
    }
    return byNode;
  }

  /** How often a shard has got another node since the start. */
  get moves(): number {
    return this.#moves.count;
  }

  command(name: string, args: readonly RedisArg[]): Promise<unknown> {
    return this.#at(args[0]).command(name, args);
  }

  script(script: Script, numberOfKeys: number, keysAndArgs: readonly RedisArg[]): Promise<unknown> {
    return this.#at(keysAndArgs[0]).script(script, numberOfKeys, keysAndArgs);
  }

  #at(key: RedisArg | undefined): ShardClient {
    const found = this.#bySlot.get(slotOf(String(key)));
    if (found === undefined) throw new Error(`the key ${String(key)} belongs to no shard`);
    return found;
  }

  async confirmOwner(): Promise<void> {
    for (const shard of this.shards) await shard.confirmOwner();
  }

  /** Whether any shard can be used. */
  get ready(): boolean {
    return this.shards.some(({ ready }) => ready);
  }

  onReady(listener: () => void): void {
    for (const shard of this.shards) shard.onReady(listener);
  }

  onForeign(listener: (error: ForeignRedis) => void): void {
    for (const shard of this.shards) shard.onForeign(listener);
  }

  /** Reads the slots in `ms`, or sooner if that is already planned. */
  #lookSoon(ms: number): void {
    if (this.#isClosed || this.#looking !== null) return;
    if (this.#timer !== null) clearTimeout(this.#timer);
    // MOVED may come from thousands of commands at once.
    const waitMs = Math.max(ms, this.#lookedAt + LOOK_OFTEN_MS - performance.now());
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#lookedAt = performance.now();
      this.#looking = this.#look().finally(() => {
        this.#looking = null;
        this.#lookSoon(
          Array.from(this.#bySlot.values()).every(({ node }) => node?.ready) ? LOOK_EVERY_MS : LOOK_OFTEN_MS,
        );
      });
    }, waitMs).unref();
  }

  /** Asks every node, and believes the one with the newest epoch: a node that was cut off still reports the former slots. */
  async #look(): Promise<void> {
    const ready = Array.from(this.#nodes).filter(([, node]) => node.ready);
    if (ready.length === 0) for (const seed of this.#seeds) this.#nodeAt(seed);
    const looks = await Promise.allSettled(ready.map(([address]) => this.#askNode(address)));
    const answers = looks.flatMap((look) => (look.status === 'fulfilled' ? [look.value] : []));
    // A node that cannot answer is asked again in 100 ms or 5 s, and its own log line says why it is away.
    const newest = answers.sort((a, b) => b.epoch - a.epoch)[0];
    if (newest !== undefined && !this.#isClosed) this.#apply(newest);
  }

  async #askNode(address: string): Promise<Look> {
    const node = this.#nodes.get(address);
    if (node === undefined) throw new RedisNotSent();
    const info = String(await node.command('cluster', ['INFO']));
    const owners = readSlotOwners(await node.command('cluster', ['SLOTS']), hostOf(address));
    return { epoch: Number(/cluster_current_epoch:(\d+)/.exec(info)?.[1] ?? 0), owners };
  }

  #apply({ owners }: Look): void {
    this.#owners = owners;
    for (const shard of this.#bySlot.values()) {
      const address = owners[shard.slot];
      // What a node has just said about itself is newer than what others have heard about it.
      if (performance.now() - shard.movedAt < HEARSAY_MS) continue;
      if (address !== null && address !== undefined) shard.moveTo(address);
    }
    const inUse = new Set(owners);
    // Until one of the masters answers, nodes without slots are kept: they know the others.
    if (!Array.from(this.#nodes).some(([address, node]) => inUse.has(address) && node.ready)) return;
    for (const [address, node] of this.#nodes) {
      if (inUse.has(address)) continue;
      this.#nodes.delete(address);
      void node.close();
    }
  }

  /** Which node (`host:port`) has each slot. */
  get owners(): SlotOwners {
    return this.#owners;
  }

  /** Waits for the commands under way, then closes. Safe to call in any state. */
  async close(): Promise<void> {
    this.#rest();
    await Promise.all(Array.from(this.#nodes.values(), (node) => node.close()));
  }

  /** Drops all connections immediately. */
  destroy(): void {
    this.#rest();
    for (const node of this.#nodes.values()) node.destroy();
  }

  #rest(): void {
    this.#isClosed = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#endComparing?.();
  }
}
