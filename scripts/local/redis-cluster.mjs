// @ts-check
// Starts and stops a local Redis Cluster: masters and replicas on loopback, on free ports. Tested by
// test/integration/redis-cluster.test.ts.

import path from 'node:path';
import { askPort, portNear } from './ports.mjs';
import { startRedis } from './redis.mjs';

/**
 * @typedef {object} ClusterOptions
 * @property {string} dir data folder; each node has a folder in it
 * @property {string} runDir the folder for the records of the processes
 * @property {number} [masters] default 3
 * @property {number} [replicas] replicas of each master; default 1
 * @property {boolean} [appendonly] default true
 * @property {'always' | 'everysec' | 'no'} [appendfsync]
 * @property {string} [password] every client and every node needs it
 * @property {readonly string[]} [args] further command-line options of each node
 * @property {Readonly<Record<string, string>>} [env] further environment variables of each node
 * @property {readonly NodePorts[]} [ports] those of an earlier start with the same data, in the order of its nodes
 * @property {string} [logDir] default: the folder of each node
 * @property {number} [nodeTimeoutMs] silence after which a node counts as failed; default 2000
 * @property {(ports: NodePorts, at: number) => Promise<NodePorts>} [behind] opens proxies before a node, and returns their ports. All
 *   clients and nodes reach it there, and node number `at` connects to others from the address 127.0.1.(at + 1).
 *
 * @typedef {{ port: number, busPort: number }} NodePorts
 *
 * @typedef {import('./redis.mjs').RunningRedis & NodePorts & {
 *   dir: string, master: number, isReplica: boolean, announced: NodePorts, restart: () => Promise<void>
 * }} ClusterNode master: its number when the cluster was made. After a failover the replica of that number is the master.
 *   dir: its data folder. announced: the ports at which others reach it. restart: starts it again after `kill`, on the same port with the same data.
 *
 * @typedef {object} RunningCluster
 * @property {string} url `redis+cluster://…`
 * @property {readonly ClusterNode[]} nodes masters first
 * @property {(node: import('./redis.mjs').RunningRedis, command: string) => Promise<string>} ask sends one command, as a line
 * @property {() => Promise<void>} stop
 */

const slots = 16_384;
const formTimeoutMs = 30_000;
/** Moving keys takes time, and a busy machine may stand still for seconds. */
const answerTimeoutMs = 10_000;

/**
 * Starts the nodes, makes a cluster of them, and waits until every node knows all others and all slots.
 * @param {ClusterOptions} options
 * @returns {Promise<RunningCluster>}
 */
export async function startRedisCluster(options) {
  const {
    dir,
    runDir,
    masters = 3,
    replicas = 1,
    nodeTimeoutMs = 2_000,
    ports = [],
    logDir,
    behind,
    ...redis
  } = options;
  const auth = options.password === undefined ? '' : `AUTH ${options.password}\r\n`;
  /** @type {ClusterNode[]} */
  const nodes = [];
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (let at = 0; at < masters * (1 + replicas); at += 1) {
      const known = ports[at];
      const port = await portNear(known?.port);
      const busPort = await portNear(known?.busPort);
      const announced = (await behind?.({ port, busPort }, at)) ?? { port, busPort };
      const nodeDir = path.join(dir, `node-${at}`);
      const start = (/** @type {number} */ wanted) =>
        startRedis({
          ...redis,
          dir: nodeDir,
          ...(logDir === undefined ? {} : { logFile: path.join(logDir, `redis-${at}.log`) }),
          port: wanted,
          runDir,
          name: `${path.basename(dir)}-node-${at}`,
          args: [
            ...settingArgs({
              'cluster-enabled': 'yes',
              'cluster-config-file': 'nodes.conf',
              'cluster-port': busPort,
              'cluster-node-timeout': nodeTimeoutMs,
              // Redis waits five seconds for more replicas, to serve them together.
              'repl-diskless-sync-delay': 0,
              // Otherwise one missing master stops the accounts of all others.
              'cluster-require-full-coverage': 'no',
            }),
            ...(behind === undefined ? [] : announce(announced, at)),
            ...(options.args ?? []),
          ],
        });
      const first = await start(port);
      const reached = behind === undefined ? { port: first.port, busPort } : announced;
      if (behind !== undefined && first.port !== port) {
        await first.stop();
        throw new Error(`port ${port} was taken by another program`);
      }
      /** @type {ClusterNode} */
      const node = {
        ...first,
        busPort,
        dir: nodeDir,
        master: at % masters,
        isReplica: at >= masters,
        announced: reached,
        restart: async () => {
          Object.assign(node, await start(first.port));
          if (node.port !== first.port) throw new Error(`port ${first.port} was taken by another program meanwhile`);
        },
      };
      nodes.push(node);
    }
    await form(nodes, masters, (node, command) => ask(node.port, auth, command));
  } catch (error) {
    await stop();
    throw error;
  }
  const hosts = nodes.map(({ announced }) => `127.0.0.1:${announced.port}`).join(',');
  const credentials = options.password === undefined ? '' : `:${options.password}@`;
  return {
    url: `redis+cluster://${credentials}${hosts}`,
    nodes,
    ask: ({ port }, command) => ask(port, auth, command),
    stop,
  };
}

/**
 * Makes a cluster of nodes that know none yet. Nodes with the data of an earlier start know each other.
 * @param {readonly ClusterNode[]} nodes @param {number} masters @param {(node: ClusterNode, command: string) => Promise<string>} say
 */
async function form(nodes, masters, say) {
  const [first, ...others] = nodes;
  if (first === undefined) return;
  const knowsAll = async (/** @type {ClusterNode} */ node) =>
    (await say(node, 'CLUSTER INFO')).includes(`cluster_known_nodes:${nodes.length}\r`);
  if (!(await knowsAll(first))) {
    for (const [at, node] of nodes.slice(0, masters).entries()) {
      const [from, to] = [Math.ceil((at * slots) / masters), Math.ceil(((at + 1) * slots) / masters) - 1];
      await say(node, `CLUSTER ADDSLOTSRANGE ${from} ${to}`);
      await say(node, `CLUSTER SET-CONFIG-EPOCH ${at + 1}`);
    }
    for (const node of others) {
      await say(node, `CLUSTER MEET 127.0.0.1 ${first.announced.port} ${first.announced.busPort}`);
    }
    await until(async () => (await Promise.all(nodes.map(knowsAll))).every((knows) => knows));
    for (const node of nodes.slice(masters)) {
      const master = /** @type {ClusterNode} */ (nodes[node.master]);
      const id = /[0-9a-f]{40}/.exec(await say(master, 'CLUSTER MYID'))?.[0];
      // A node that has not heard of its master yet refuses.
      await until(async () => (await say(node, `CLUSTER REPLICATE ${id}`)).includes('+OK\r\n+OK'));
    }
  }
  await until(async () => {
    for (const node of nodes) {
      const info = await say(node, 'CLUSTER INFO');
      // Without full coverage a node says 'ok' before it has heard of the slots of all others.
      if (!info.includes('cluster_state:ok') || !info.includes(`cluster_slots_ok:${slots}\r`)) return false;
      if ((await say(node, 'INFO replication')).includes('master_link_status:down')) return false;
    }
    return true;
  });
}

/** @param {NodePorts} ports @param {number} at @returns {string[]} */
const announce = ({ port, busPort }, at) =>
  settingArgs({
    'cluster-announce-ip': '127.0.0.1',
    'cluster-announce-port': port,
    'cluster-announce-bus-port': busPort,
    'bind-source-addr': `127.0.1.${at + 1}`,
  });

/** @param {Record<string, string | number>} settings of Redis @returns {string[]} arguments of `redis-server` */
export const settingArgs = (settings) =>
  Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);

/** @param {number} port @param {string} auth @param {string} command @returns {Promise<string>} the replies as they were sent */
async function ask(port, auth, command) {
  return (await askPort(port, `${auth}${command}\r\nQUIT\r\n`, answerTimeoutMs)) ?? '';
}

/** @param {() => Promise<boolean>} condition */
async function until(condition) {
  const endAt = Date.now() + formTimeoutMs;
  while (!(await condition())) {
    if (Date.now() > endAt) throw new Error('the nodes did not become a Redis Cluster in 30 s');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
