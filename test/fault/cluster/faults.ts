// Carries out the faults of a cluster, undoes them, and says what each may lose.

import { setTimeout as sleep } from 'node:timers/promises';
import { callsWrittenSince, cutFile, type FileEnd, writtenEnd } from '../append-only-file.ts';
import type { Heal } from '../faults.ts';
import { readOnlyInRedis } from '../history/only-in-redis.ts';
import { type Losses, ON_ITS_WAY_MS } from '../losses.ts';
import type { Stack } from '../stack.ts';
import type { Masters } from './masters.ts';
import { type FaultCluster, NODE_TIMEOUT_MS, replicaOf } from './nodes.ts';
import { type ClusterFault, mayReplace } from './plan.ts';

/**
 * How long after a partition a master that no other node hears may still take writes: until it counts the others as failed. It pings
 * each of them every half timeout.
 */
const TAKES_WRITES_MS = NODE_TIMEOUT_MS * 1.5 + 500;
/** A master that was stopped and goes on believes that it is one until it hears of its successor. */
const BELIEVES_MS = 500;

type Scene = {
  readonly cluster: FaultCluster;
  readonly losses: Losses;
  readonly masters: Masters;
  /** The shards of each group at the start of the schedule. */
  readonly shards: readonly ReadonlySet<number>[];
  readonly stack: Stack;
};

/** Carries out a fault until it is undone, and the node is where it belongs. */
export async function suffer(scene: Scene, fault: ClusterFault): Promise<void> {
  await sleep(fault.atMs);
  const master = await scene.masters.before(fault.group);
  const heal = await inflict(scene, fault, master);
  await sleep(fault.forMs);
  await heal();
  await (mayReplace(fault) ? scene.masters.after(fault.group, master) : scene.masters.before(fault.group));
}

async function inflict(scene: Scene, fault: ClusterFault, master: number): Promise<Heal> {
  const { cluster, losses, stack } = scene;
  const { group } = fault;
  const node = cluster.node(master);
  const mayLose = (why: string, fromMs: number, toMs: number, isAll = false): void =>
    scene.losses.add({
      group,
      shards: scene.shards[group] as ReadonlySet<number>,
      fromMs: fromMs - ON_ITS_WAY_MS,
      toMs,
      why,
      isAll,
    });
  const fileNow = (): Promise<FileEnd> => writtenEnd(node.dir, () => cluster.ask(master, 'INFO persistence'));
  const nowMs = Date.now();
  switch (fault.kind) {
    case 'master killed': {
      const since = await fileNow();
      await sleep(ON_ITS_WAY_MS);
      const killedAtMs = Date.now();
      await node.kill();
      mayLose(fault.kind, killedAtMs, killedAtMs + ON_ITS_WAY_MS);
      losses.addWrites(group, callsWrittenSince(node.dir, since));
      return async () => {
        if (fault.isReplaced) await cluster.replaced(group, master);
        await node.restart();
      };
    }
    case 'master stopped':
      node.pause();
      return async () => {
        if (fault.isReplaced) await cluster.replaced(group, master);
        mayLose(fault.kind, nowMs, Date.now() + BELIEVES_MS);
        node.resume();
      };
    case 'master cut off': {
      const rejoin = cluster.cutOff(master, fault.fromClients);
      mayLose(fault.kind, nowMs, nowMs + (fault.fromClients ? ON_ITS_WAY_MS : TAKES_WRITES_MS));
      return async () => {
        await cluster.replaced(group, master);
        rejoin();
      };
    }
    case 'stale replica promoted': {
      const since = await fileNow();
      const connect = cluster.cutReplication(master);
      return async () => {
        const killedAtMs = Date.now();
        await node.kill();
        mayLose(fault.kind, nowMs, killedAtMs + ON_ITS_WAY_MS);
        losses.addWrites(group, callsWrittenSince(node.dir, since));
        await cluster.replaced(group, master);
        connect();
        await node.restart();
      };
    }
    case 'failover by hand':
      await cluster.failOver(group);
      return async () => {};
    case 'file cut': {
      const since = await fileNow();
      return async () => {
        await node.kill();
        mayLose(fault.kind, nowMs, Date.now() + ON_ITS_WAY_MS);
        losses.replaced(group);
        losses.addWrites(group, cutFile(node.dir, since, fault.part));
        await node.restart();
      };
    }
    case 'flushed': {
      losses.addWrites(group, await readOnlyInRedis(stack, scene.shards[group] as ReadonlySet<number>));
      await cluster.ask(master, 'FLUSHALL');
      mayLose(fault.kind, nowMs, Date.now() + ON_ITS_WAY_MS, true);
      losses.replaced(group);
      return async () => {};
    }
    case 'there and back':
      await cluster.failOver(group);
      return () => cluster.failOver(group);
    case 'replica killed': {
      const replica = cluster.node(replicaOf(master));
      await replica.kill();
      return () => replica.restart();
    }
    case 'slot moved': {
      const [shard] = scene.shards[group] as ReadonlySet<number>;
      const slot = stack.slots[shard as number] as number;
      await cluster.moveSlot(slot, group, fault.to);
      return () => cluster.moveSlot(slot, fault.to, group);
    }
  }
}
