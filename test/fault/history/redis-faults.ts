// Carries out the faults of one Redis and its replica, and says what each may lose.

import { setTimeout as sleep } from 'node:timers/promises';
import { ask } from '../../support/replica.ts';
import { callsWrittenSince, cutFile, type FileEnd, writtenEnd } from '../append-only-file.ts';
import { type Losses, ON_ITS_WAY_MS } from '../losses.ts';
import type { Stack } from '../stack.ts';
import { readOnlyInRedis } from './only-in-redis.ts';
import type { RedisFault } from './plan.ts';

type Scene = {
  readonly stack: Stack;
  readonly losses: Losses;
};

/** Whether the fault needs the other Redis to follow from the beginning. */
export const needsReplica = ({ kind }: RedisFault): boolean => kind !== 'file cut' && kind !== 'flushall';

export async function sufferRedis(scene: Scene, fault: RedisFault): Promise<void> {
  const { stack, losses } = scene;
  const pair = stack.redisPair;
  const fileNow = (): Promise<FileEnd> => writtenEnd(pair.master.dir, () => ask(pair.master, 'INFO persistence'));
  const sinceMs = Date.now();
  const mayLose = (): void => loseSince(scene, fault.kind, sinceMs);
  switch (fault.kind) {
    case 'file cut': {
      const since = await fileNow();
      await sleep(fault.forMs);
      await pair.master.kill();
      mayLose();
      losses.addWrites(0, cutFile(pair.master.dir, since, fault.part));
      await pair.master.restart();
      await pair.followAgain();
      return;
    }
    case 'replica promoted': {
      const [{ dir }, since] = [pair.master, await fileNow()];
      pair.isolate();
      await sleep(fault.forMs);
      if (!fault.isAlive) await pair.master.kill();
      await pair.promote();
      stack.lead('redis', pair.master.port);
      if (fault.isAlive) await leaveInTurn(stack);
      stack.cut('redis');
      mayLose();
      losses.addWrites(0, callsWrittenSince(dir, since));
      if (!fault.isAlive) await pair.replica.restart();
      await pair.follow();
      return;
    }
    case 'old master back': {
      pair.isolate();
      await sleep(fault.forMs);
      await pair.promote();
      const [{ dir }, since] = [pair.master, await fileNow()];
      stack.lead('redis', pair.master.port);
      await leaveInTurn(stack);
      stack.cut('redis');
      await sleep(fault.backMs);
      pair.turnBack();
      stack.lead('redis', pair.master.port);
      stack.cut('redis');
      mayLose();
      losses.addWrites(0, callsWrittenSince(dir, since));
      await pair.follow();
      return;
    }
    case 'a, b, a': {
      const since = await fileNow();
      pair.isolate();
      await sleep(fault.forMs);
      // Then the file is another one. What is written meanwhile belongs to calls that have just ended.
      losses.addWrites(0, callsWrittenSince(pair.master.dir, since));
      await pair.followReplicaForAMoment();
      mayLose();
      await pair.follow();
      return;
    }
    case 'flushall':
      // What waits to be stored is lost, however long it has waited.
      losses.addWrites(0, await readOnlyInRedis(stack, allShards(stack)));
      await ask(pair.master, 'FLUSHALL');
      loseSince(scene, fault.kind, sinceMs, true);
  }
}

/** Gateway and writers notice at times of their own that there is another master. The test itself has to look at the new one. */
async function leaveInTurn(stack: Stack): Promise<void> {
  stack.link('test-redis').reset();
  stack.link('gateway-redis').reset();
  await sleep(60);
  stack.link('writer-redis').reset();
  await sleep(60);
}

const allShards = ({ stores }: Stack): ReadonlySet<number> => new Set(stores.keys.open.keys());

function loseSince({ stack, losses }: Scene, why: string, sinceMs: number, isAll = false): void {
  losses.add({
    group: 0,
    shards: allShards(stack),
    fromMs: sinceMs - ON_ITS_WAY_MS,
    toMs: Date.now() + ON_ITS_WAY_MS,
    why,
    isAll,
  });
  losses.replaced(0);
}
