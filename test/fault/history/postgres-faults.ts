// Carries out the faults that make Postgres older than it was, ends them, and says what was given up.

import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/wait.ts';
import type { Stack } from '../stack.ts';
import { acceptIfOlder } from './accept.ts';
import { type GivenUp, readKnown } from './given-up.ts';
import type { PostgresFault } from './plan.ts';
import { askPostgres, type Former, type PostgresPair } from './postgres-pair.ts';

const CANCEL_EVERY_MS = 60;
const QUIET_WITHIN_MS = 10_000;

type Scene = {
  readonly stack: Stack;
  readonly pair: PostgresPair;
  readonly givenUp: GivenUp;
  readonly accountIds: readonly string[];
};

/** What a fault needs before it begins. To be called while nobody uses Postgres. */
export async function preparePostgres(pair: PostgresPair, { kind }: PostgresFault): Promise<void> {
  if (kind === 'rewound') return;
  await pair.addStandby();
  if (kind === 'waits cancelled') await pair.waitForStandby(true);
}

/** @param isPrepared whether `preparePostgres` was called before the load began */
export async function sufferPostgres(scene: Scene, fault: PostgresFault, isPrepared: boolean): Promise<void> {
  if (!isPrepared) await away(scene, 'all', () => preparePostgres(scene.pair, fault));
  await (fault.kind === 'waits cancelled' ? cancelWaits(scene, fault) : goBack(scene, fault));
  await scene.pair.dropStandby();
  // What was trimmed after a flush of the one that is gone makes the other one older than Redis, whichever of them is called right.
  await acceptIfOlder(scene.stack);
}

async function cancelWaits(scene: Scene, fault: PostgresFault): Promise<void> {
  const { pair, accountIds, givenUp } = scene;
  pair.isolate();
  for (let leftMs = fault.forMs + fault.olderMs; leftMs > 0; leftMs -= CANCEL_EVERY_MS) {
    await sleep(CANCEL_EVERY_MS);
    await pair.cancelWaits();
  }
  if (fault.end === 'right one back') {
    pair.reconnect();
    await pair.waitForStandby(false);
    return;
  }
  await away(scene, 'all', async () => {
    const before = await readKnown(pair, accountIds);
    const former = await pair.promote();
    givenUp.tookOver(before, await readKnown(pair, accountIds));
    await pair.discard(former);
  });
}

async function goBack(scene: Scene, fault: PostgresFault): Promise<void> {
  const { pair, accountIds, givenUp } = scene;
  const known = () => readKnown(pair, accountIds);
  const copy = fault.kind === 'rewound' ? await away(scene, 'all', () => pair.copy()) : null;
  if (copy === null) pair.isolate();
  await sleep(fault.forMs);
  const isDeposed = fault.kind === 'primary deposed';
  // What the present one has is read before anybody can store in it.
  const swapped = await away(scene, isDeposed ? 'gateway' : 'all', async () => {
    const before = await known();
    const former = copy === null ? await pair.promote() : await pair.exchange(copy);
    return { former, before, older: await known() };
  });
  const { former, older } = swapped;
  const newer = isDeposed ? await leaveDeposed(scene, former, fault.olderMs) : swapped.before;
  givenUp.replaced(newer, older);
  await sleep(fault.olderMs);
  if (fault.end === 'older one accepted') {
    givenUp.giveUp(newer, older);
    await pair.discard(former);
    return;
  }
  const back = await away(scene, 'all', async () => {
    const left = await known();
    const abandoned = former.kind === 'folder' ? await pair.exchange(former) : pair.turnBack(former);
    return { abandoned, left, right: await known() };
  });
  givenUp.replaced(back.left, back.right);
  givenUp.giveUp(back.left, back.right);
  await pair.discard(back.abandoned);
}

/** A writer's session stays with the old primary for a while. @returns what that one has in the end */
async function leaveDeposed(scene: Scene, former: Former, forMs: number) {
  await sleep(forMs);
  const { stack, accountIds } = scene;
  if (former.kind === 'folder') throw new Error('a folder has no sessions');
  for (const link of stack.linksOf('postgres', 'writer')) link.reset();
  await untilAlone(former.server, async () => {});
  return readKnown({ primary: former.server }, accountIds);
}

/** Does something while Postgres has no clients but the test. Then clients find the primary of that time. */
async function away<T>({ stack, pair }: Scene, whose: 'all' | 'gateway', work: () => Promise<T>): Promise<T> {
  const links = stack.linksOf('postgres', whose);
  for (const link of links) link.set({ kind: 'refuse' });
  if (whose === 'all') await untilAlone(pair.primary, () => pair.cancelWaits());
  const result = await work();
  stack.lead('postgres', pair.primary.port);
  stack.link('test-postgres').reset();
  for (const link of links) link.set({ kind: 'pass' });
  return result;
}

/** Waits until the sessions whose connections were cut have ended what they did. */
async function untilAlone(server: PostgresPair['primary'], besides: () => Promise<void>): Promise<void> {
  await until(async () => {
    await besides();
    const [row] = await askPostgres(
      server,
      (sql) => sql<{ others: number }[]>`
        SELECT count(*)::int AS others FROM pg_stat_activity
        WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND application_name NOT LIKE '%test'`,
    );
    return row?.others === 0;
  }, QUIET_WITHIN_MS);
}
