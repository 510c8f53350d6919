import path from 'node:path';
import { type ClusterNode, type RunningCluster, startRedisCluster } from '../../scripts/local/redis-cluster.mjs';
import { scratchDir, scratchRunDir } from './stores.ts';

export type { ClusterNode, RunningCluster };

let clusters = 0;

/** Three masters with a replica each, unless told otherwise. It ends with the test run, even if a test forgets to stop it. */
export function startTestCluster(
  options: Omit<Parameters<typeof startRedisCluster>[0], 'dir' | 'runDir'> = {},
): Promise<RunningCluster> {
  clusters++;
  return startRedisCluster({
    appendonly: false,
    ...options,
    dir: path.join(scratchDir(), `cluster-${process.pid}-${clusters}`),
    runDir: scratchRunDir(),
  });
}

/** Moves a slot with all its keys, as `redis-cli --cluster reshard` does. @param between called while both nodes have a part of it */
export async function moveSlot(
  cluster: RunningCluster,
  slot: number,
  from: ClusterNode,
  to: ClusterNode,
  between: () => Promise<void>,
): Promise<void> {
  const say = async (node: ClusterNode, command: string): Promise<string> => {
    const reply = await cluster.ask(node, command);
    // The keys may be gone by themselves, as token buckets do.
    if (!/^\+(OK|NOKEY)/.test(reply)) throw new Error(`${command}: ${reply}`);
    return reply;
  };
  const idOf = async (node: ClusterNode): Promise<string> =>
    /[0-9a-f]{40}/.exec(await cluster.ask(node, 'CLUSTER MYID'))?.[0] ?? '';
  const [source, target] = [await idOf(from), await idOf(to)];
  await say(to, `CLUSTER SETSLOT ${slot} IMPORTING ${source}`);
  await say(from, `CLUSTER SETSLOT ${slot} MIGRATING ${target}`);
  const [first, ...rest] = await keysIn(cluster, from, slot);
  await say(from, `MIGRATE 127.0.0.1 ${to.port} "" 0 5000 KEYS ${first}`);
  await between();
  for (let keys = rest; keys.length > 0; keys = await keysIn(cluster, from, slot)) {
    await say(from, `MIGRATE 127.0.0.1 ${to.port} "" 0 5000 KEYS ${keys.join(' ')}`);
  }
  await say(to, `CLUSTER SETSLOT ${slot} NODE ${target}`);
  await say(from, `CLUSTER SETSLOT ${slot} NODE ${target}`);
}

async function keysIn(cluster: RunningCluster, node: ClusterNode, slot: number): Promise<string[]> {
  const reply = await cluster.ask(node, `CLUSTER GETKEYSINSLOT ${slot} 1000`);
  return reply.split('\r\n').filter((line) => /^[a-z]+:/.test(line));
}
