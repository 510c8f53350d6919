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
 * @property {number} [nodeTimeoutMs] silence after which a node counts as failed; default 2000
 *
 * @typedef {import('./redis.mjs').RunningRedis & { master: number, isReplica: boolean }} ClusterNode
 *
 * @typedef {object} RunningCluster
 * @property {string} url `redis+cluster://…`
 * @property {readonly ClusterNode[]} nodes masters first
 * @property {(node: import('./redis.mjs').RunningRedis, command: string) => Promise<string>} ask sends one command, as a line
 * @property {() => Promise<void>} stop
 */

const slots = 16_384;
const formTimeoutMs = 30_000;

/**
 * Starts the nodes, makes a cluster of them, and waits until every node knows all others and all slots.
 * @param {ClusterOptions} options
 * @returns {Promise<RunningCluster>}
 */
export async function startRedisCluster(options) {
  const { dir, runDir, masters = 3, replicas = 1, nodeTimeoutMs = 2_000, ...redis } = options;
  /** @type {(ClusterNode & { busPort: number })[]} */
  const nodes = [];
  const stop = async () => {
    await Promise.all(nodes.map((node) => node.stop()));
  };
  try {
    for (let at = 0; at < masters * (1 + replicas); at += 1) {
      const busPort = await portNear(undefined);
      const node = await startRedis({
        ...redis,
        dir: path.join(dir, `node-${at}`),
        runDir,
        name: `${path.basename(dir)}-node-${at}`,
        args: [
          ...['--cluster-enabled', 'yes', '--cluster-config-file', 'nodes.conf', '--cluster-port', String(busPort)],
          ...['--cluster-node-timeout', String(nodeTimeoutMs)],
          // Otherwise one missing master stops the accounts of all others.
          ...['--cluster-require-full-coverage', 'no'],
        ],
      });
      nodes.push({ ...node, busPort, master: at % masters, isReplica: at >= masters });
    }
    await form(nodes, masters);
  } catch (error) {
    await stop();
    throw error;
  }
  const hosts = nodes.slice(0, masters).map(({ port }) => `127.0.0.1:${port}`);
  return { url: `redis+cluster://${hosts.join(',')}`, nodes, ask: ({ port }, command) => ask(port, command), stop };
}

/** @param {readonly (ClusterNode & { busPort: number })[]} nodes @param {number} masters */
async function form(nodes, masters) {
  const [first, ...others] = nodes;
  if (first === undefined) return;
  for (const [at, { port }] of nodes.slice(0, masters).entries()) {
    const [from, to] = [Math.ceil((at * slots) / masters), Math.ceil(((at + 1) * slots) / masters) - 1];
    await ask(port, `CLUSTER ADDSLOTSRANGE ${from} ${to}`);
    await ask(port, `CLUSTER SET-CONFIG-EPOCH ${at + 1}`);
  }
  for (const { port } of others) await ask(port, `CLUSTER MEET 127.0.0.1 ${first.port} ${first.busPort}`);
  await until(async () => {
    for (const { port } of nodes) {
      if (!(await ask(port, 'CLUSTER INFO')).includes(`cluster_known_nodes:${nodes.length}\r`)) return false;
    }
    return true;
  });
  for (const { port, master } of nodes.slice(masters)) {
    const id = /[0-9a-f]{40}/.exec(await ask(/** @type {ClusterNode} */ (nodes[master]).port, 'CLUSTER MYID'))?.[0];
    // A node that has not heard of its master yet refuses.
    await until(async () => (await ask(port, `CLUSTER REPLICATE ${id}`)).startsWith('+OK'));
  }
  await until(async () => {
    for (const { port, isReplica } of nodes) {
      if (!(await ask(port, 'CLUSTER INFO')).includes('cluster_state:ok')) return false;
      if (isReplica && !(await ask(port, 'INFO replication')).includes('master_link_status:up')) return false;
    }
    return true;
  });
}

/** @param {number} port @param {string} command @returns {Promise<string>} the reply as it was sent; '' if there is none */
async function ask(port, command) {
  return (await askPort(port, `${command}\r\nQUIT\r\n`)) ?? '';
}

/** @param {() => Promise<boolean>} condition */
async function until(condition) {
  const endAt = Date.now() + formTimeoutMs;
  while (!(await condition())) {
    if (Date.now() > endAt) throw new Error('the nodes did not become a Redis Cluster in 30 s');;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
