import { RedisNotCarriedOut, RedisNotSent } from '../redis.ts';
import { type ReplicaDemand, type TripConnection, tripConnection } from '../replicated-connection.ts';
import type { ScriptConnectionOptions, TripListener, TripMeter } from '../script-connection.ts';
import type { TripEncoder } from '../trip-encoder.ts';
import { parseClusterUrl } from './cluster-url.ts';
import type { RedisCluster } from './redis-cluster.ts';
import type { ShardClient } from './shard-client.ts';
import { hostOf, readRefusal } from './slots.ts';

type Log = { warn(fields: object, message: string): void };
type Options = Omit<ScriptConnectionOptions, 'installation' | 'meter'> & { meterOf?(address: string): TripMeter };

/** How often a trip follows MOVED. Nodes that disagree could send it back and forth for ever. */
const MAX_MOVES = 5;
/** How long after the arrival of a new node the connections that no shard uses are closed. */
const UNUSED_MS = 10_000;

/** The connections for batches to the nodes of a cluster: one per node, shared by all its shards. */
export class ClusterBatches {
  readonly shards: readonly ShardBatches[];
  readonly #options: Options;
  readonly #log: Log;
  readonly #urlOf: (address: string) => string;
  readonly #demand: ReplicaDemand | null;
  readonly #connections = new Map<string, TripConnection>();
  #isClosed = false;

  /** @param options.url the URL of the cluster @param demand how many replicas of each node must have a trip */
  constructor(cluster: RedisCluster, options: Options, log: Log, demand: ReplicaDemand | null = null) {
    this.#options = options;
    this.#log = log;
    this.#demand = demand;
    this.#urlOf = parseClusterUrl(options.url).urlOf;
    this.shards = cluster.shards.map(
      (shard) => new ShardBatches(shard, options.script.sha, (address) => this.connectionTo(address)),
    );
  }

  /** Connects to the nodes that have shards at present, or rejects with the reason. */
  async connect(): Promise<void> {
    const addresses = new Set(this.shards.map(({ client }) => client.address));
    await Promise.all(Array.from(addresses, (address) => this.#make(address).connect()));
    for (const shard of this.shards) shard.start();
  }

  /** @returns null after `close` */
  connectionTo(address: string): TripConnection | null {
    const known = this.#connections.get(address);
    if (known !== undefined) return known;
    if (this.#isClosed) return null;
    const connection = this.#make(address);
    connection.connectInBackground();
    // A new node often replaces another one.
    setTimeout(() => this.#closeUnused(), UNUSED_MS).unref();
    return connection;
  }

  /** Whether trips can be sent to this node. */
  isReady(address: string): boolean {
    return this.#connections.get(address)?.ready ?? false;
  }

  #closeUnused(): void {
    const used = new Set(this.shards.map(({ client }) => client.address));
    for (const [address, connection] of this.#connections) {
      if (used.has(address)) continue;
      this.#connections.delete(address);
      void connection.close();
    }
  }

  #make(address: string): TripConnection {
    const { meterOf, ...options } = this.#options;
    const connection = tripConnection(
      { ...options, url: this.#urlOf(address), meter: meterOf?.(address) },
      this.#log,
      this.#demand,
    );
    this.#connections.set(address, connection);
    connection.onReady(() => {
      for (const shard of this.shards) if (shard.client.address === address) shard.check();
    });
    return connection;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await Promise.all(Array.from(this.#connections.values(), (connection) => connection.close()));
  }
}

/**
 * Sends the trips of one shard to the node that has it.
 *
 * `ShardClient` checks whose data they are by comparing the installation's id. That is enough: batch.lua charges only wallets and
 * keys that were loaded, and loading compares the id in the same step.
 */
class ShardBatches {
  readonly client: ShardClient;
  readonly #sha: string;
  readonly #connectionTo: (address: string) => TripConnection | null;
  readonly #listeners: (() => void)[] = [];
  #connection: TripConnection | null = null;

  constructor(client: ShardClient, sha: string, connectionTo: (address: string) => TripConnection | null) {
    this.client = client;
    this.#sha = sha;
    this.#connectionTo = connectionTo;
  }

  start(): void {
    this.client.onReady(() => this.check());
    this.check();
  }

  /** Call this when the shard may have another node, or its node another connection. */
  check(): void {
    this.#connection = this.#connectionTo(this.client.address);
    if (!this.ready) return;
    for (const listener of this.#listeners) listener();
  }

  get ready(): boolean {
    return this.client.ready && (this.#connection?.ready ?? false);
  }

  /** Calls `listener` each time trips can be sent again: after a reconnection, or to another node. */
  onReady(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Sends a trip. If a node refuses it because of its slot, it goes to the right node, or is lost with `RedisNotSent`. */
  send(trip: TripEncoder, listener: TripListener): void {
    const wire = trip.take(this.#sha);
    if (this.#connection !== null && this.ready) this.#sendTo(this.#connection, wire, listener, 0);
    else listener.onLost(new RedisNotSent());
  }

  #sendTo(connection: TripConnection, wire: Buffer, listener: TripListener, moves: number): void {
    const askedAt = this.client.address;
    connection.sendWire(wire, {
      onReply: (bytes, start, end) => listener.onReply(bytes, start, end),
      onLost: (error) => {
        const refusal = readRefusal(error.message, hostOf(askedAt));
        if (refusal === null) return listener.onLost(error);
        // Nothing was carried out. A trip does not wait for its slot: its callers are refused, and its settlements are sent again.
        if (!this.client.follow(refusal.address) || moves >= MAX_MOVES) {
          return listener.onLost(new RedisNotCarriedOut(error.message));
        }
        const right = this.#connectionTo(this.client.address);
        this.#connection = right;
        if (right?.ready) this.#sendTo(right, wire, listener, moves + 1);
        else listener.onLost(new RedisNotCarriedOut(error.message));
      },
    });
  }
}
