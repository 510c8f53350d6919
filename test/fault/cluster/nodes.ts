// A Redis Cluster whose nodes can be killed, stopped, cut off from each other, and made masters by hand. All clients and nodes
// reach a node through two proxies, one for its port and one for its bus. Each node connects to the others from an address of its
// own in 127.0.1.0/24, so the proxies know who is who. On Linux such addresses need no set-up.

import { settingArgs } from '../../../scripts/local/redis-cluster.mjs';
import { type ClusterNode, moveSlot, type RunningCluster, startTestCluster } from '../../support/cluster.ts';
import { until } from '../../support/wait.ts';
import { FaultProxy } from '../fault-proxy.ts';

/** Short, so that a failover takes 2 s. With less, a busy machine makes nodes look dead. */
export const NODE_TIMEOUT_MS = 1_000;
/** Number of masters. Node `group` and node `group + GROUPS` are a master and its replica, whichever of them is the master. */
export const GROUPS = 3;
/** Far beyond the node timeout, an election and a full synchronisation. */
const PATIENCE_MS = 60_000;
/** After this a replica that was asked to take over, and could not, may be asked again. */
const GIVES_UP_MS = 6_000;

/** What one node says of another (`CLUSTER NODES`). */
type Seen = { readonly isMaster: boolean; readonly hasFailed: boolean; readonly slots: readonly string[] };

export class FaultCluster {
  readonly #cluster: RunningCluster;
  readonly #clientProxies: readonly FaultProxy[];
  readonly #busProxies: readonly FaultProxy[];

  private constructor(cluster: RunningCluster, proxies: readonly (readonly [FaultProxy, FaultProxy])[]) {
    this.#cluster = cluster;
    this.#clientProxies = proxies.map(([client]) => client);
    this.#busProxies = proxies.map(([, bus]) => bus);
  }

  static async start(env: Readonly<Record<string, string>> = {}): Promise<FaultCluster> {
    const proxies: (readonly [FaultProxy, FaultProxy])[] = [];
    const cluster = await startTestCluster({
      nodeTimeoutMs: NODE_TIMEOUT_MS,
      // Everything that a node has acknowledged is on its disk.
      appendonly: true,
      appendfsync: 'always',
      env,
      args: settingArgs({
        'repl-ping-replica-period': 1,
        // However old a replica's data are, it takes over.
        'cluster-replica-validity-factor': 0,
      }),
      behind: async ({ port, busPort }) => {
        const pair = [await FaultProxy.open(port), await FaultProxy.open(busPort)] as const;
        proxies.push(pair);
        return { port: pair[0].port, busPort: pair[1].port };
      },
    }).catch(async (error: unknown) => {
      for (const proxy of proxies.flat()) await proxy.close();
      throw error;
    });
    return new FaultCluster(cluster, proxies);
  }

  /** `redis+cluster://…`, through the proxies. */
  get url(): string {
    return this.#cluster.url;
  }

  node(at: number): ClusterNode {
    return this.#cluster.nodes[at] as ClusterNode;
  }

  ask(at: number, command: string): Promise<string> {
    return this.#cluster.ask(this.node(at), command);
  }

  /** Which node has the data of the group, as the other groups see it. */
  async masterOf(group: number): Promise<number> {
    const found = await until(async () => {
      const seen = await this.#seenByOthers(group);
      const masters = [group, group + GROUPS].filter((at) => {
        const node = seen?.get(at);
        return node?.isMaster && !node.hasFailed;
      });
      return masters.length === 1 && masters;
    }, PATIENCE_MS);
    return found[0] as number;
  }

  /** Waits until another node than `before` has the data of the group. */
  async replaced(group: number, before: number): Promise<void> {
    await until(() => this.#isReplaced(group, before), PATIENCE_MS);
  }

  async #isReplaced(group: number, before: number): Promise<boolean> {
    const after = (await this.#seenByOthers(group))?.get(replicaOf(before));
    return after?.isMaster === true && after.slots.length > 0;
  }

  /** What a node of another group says; null if none of them answers. */
  async #seenByOthers(group: number): Promise<Map<number, Seen> | null> {
    for (const other of [(group + 1) % GROUPS, (group + 2) % GROUPS]) {
      for (const at of [other, other + GROUPS]) {
        const seen = this.#read(await this.ask(at, 'CLUSTER NODES'));
        if (seen.size === 2 * GROUPS) return seen;
      }
    }
    return null;
  }

  #read(reply: string): Map<number, Seen> {
    const lines = reply.split(/\r?\n/).filter((line) => /^[0-9a-f]{40} /.test(line));
    const seen = lines.map((line) => {
      const [, address = '', flags = '', , , , , , ...slots] = line.split(' ');
      const port = Number(/:(\d+)@/.exec(address)?.[1]);
      const at = this.#cluster.nodes.findIndex(({ announced }) => announced.port === port);
      // 'fail?' is the opinion of one node.
      const hasFailed = flags.split(',').some((flag) => flag === 'fail' || flag === 'fail?');
      return [at, { isMaster: flags.includes('master'), hasFailed, slots }] as const;
    });
    return new Map(seen.filter(([at]) => at >= 0));
  }

  /** Waits until all nodes know each other, each group has one master, and every replica has what its master has. */
  async whole(): Promise<void> {
    await until(async () => {
      for (let at = 0; at < 2 * GROUPS; at++) {
        const seen = this.#read(await this.ask(at, 'CLUSTER NODES'));
        if (seen.size !== 2 * GROUPS || Array.from(seen.values()).some(({ hasFailed }) => hasFailed)) return false;
        for (let group = 0; group < GROUPS; group++) {
          if (seen.get(group)?.isMaster === seen.get(group + GROUPS)?.isMaster) return false;
        }
      }
      const current = await Promise.all(Array.from({ length: GROUPS }, (_, group) => this.#isReplicated(group)));
      return current.every(Boolean);
    }, PATIENCE_MS);
  }

  async #isReplicated(group: number): Promise<boolean> {
    const master = await this.masterOf(group);
    const [of, at] = [
      await this.ask(master, 'INFO replication'),
      await this.ask(replicaOf(master), 'INFO replication'),
    ];
    const field = (name: string, info: string): string | undefined => new RegExp(`${name}:(\\w+)`).exec(info)?.[1];
    return (
      field('master_link_status', at) === 'up' &&
      field('slave_repl_offset', at) === field('master_repl_offset', of) &&
      field('master_replid', at) === field('master_replid', of)
    );
  }

  /** The group of each slot, as it is now. */
  async groups(): Promise<readonly number[]> {
    const groups: number[] = [];
    for (let group = 0; group < GROUPS; group++) {
      const seen = await this.#seenByOthers((group + 1) % GROUPS);
      const slots = [group, group + GROUPS].flatMap((at) => seen?.get(at)?.slots ?? []);
      for (const range of slots) {
        const [from, to = from] = range.split('-').map(Number) as [number, number?];
        for (let slot = from; slot <= to; slot++) groups[slot] = group;
      }
    }
    return groups;
  }

  /** Cuts a node off from all other nodes, and from all clients if told so. @returns undoes it: what was on its way arrives */
  cutOff(at: number, fromClients: boolean): () => void {
    const own = addressOf(at);
    const isClient = (source: string): boolean => !source.startsWith('127.0.1.');
    this.#eachProxy((proxy, of) => {
      if (of !== at) proxy.cutOff((source) => source === own);
      else proxy.cutOff((source) => (isClient(source) ? fromClients : source !== own));
    });
    return () => this.#eachProxy((proxy) => proxy.cutOff(() => false));
  }

  /** From now on a replica gets nothing from its master, and what is on its way is lost. @returns undoes it */
  cutReplication(master: number): () => void {
    const replica = addressOf(replicaOf(master));
    const proxy = this.#clientProxies[master] as FaultProxy;
    proxy.cutOff((source) => source === replica);
    proxy.reset((source) => source === replica);
    return () => proxy.cutOff(() => false);
  }

  #eachProxy(work: (proxy: FaultProxy, of: number) => void): void {
    for (const proxies of [this.#clientProxies, this.#busProxies]) {
      for (const [of, proxy] of proxies.entries()) work(proxy, of);
    }
  }

  /** Makes the replica of a group its master, without loss. */
  async failOver(group: number): Promise<void> {
    const master = await this.masterOf(group);
    const replica = replicaOf(master);
    let askedAt = Number.NEGATIVE_INFINITY;
    await until(async () => {
      // A replica that is not connected to its master refuses. One that was asked gives up after five seconds.
      if (performance.now() - askedAt > GIVES_UP_MS) {
        const asked = await this.ask(replica, 'CLUSTER FAILOVER');
        if (asked.startsWith('+OK')) askedAt = performance.now();
      }
      return this.#isReplaced(group, master);
    }, PATIENCE_MS);
  }

  /** All clients of all nodes connect anew. */
  async dropClients(): Promise<void> {
    for (const node of this.#cluster.nodes) await this.#cluster.ask(node, 'CLIENT KILL TYPE normal SKIPME yes');
  }

  async moveSlot(slot: number, from: number, to: number): Promise<void> {
    const [source, target] = [await this.masterOf(from), await this.masterOf(to)];
    await moveSlot(this.#cluster, slot, this.node(source), this.node(target), async () => {});
  }

  async stop(): Promise<void> {
    await this.#cluster.stop();
    for (const proxies of [this.#clientProxies, this.#busProxies]) for (const proxy of proxies) await proxy.close();
  }
}

/** The address from which a node connects to others (scripts/local/redis-cluster.mjs). */
const addressOf = (at: number): string => `127.0.1.${at + 1}`;

/** The other node of the same group. */
export const replicaOf = (master: number): number => (master + GROUPS) % (2 * GROUPS);
