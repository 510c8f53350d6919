// One schedule: load, faults, healing, and the books.

import { setTimeout as sleep } from 'node:timers/promises';
import { checkBuyer, checkRecords, compare, type Row, readRecords, readRepairs, readSeen } from './books.ts';
import { checkBudgets } from './budgets.ts';
import type { Told } from './callers.ts';
import { checkChanges, checkTerms } from './changes.ts';
import { suffer } from './cluster/faults.ts';
import {
  callersOf,
  type Evidence,
  groupOf,
  inflictAll,
  type Outcome,
  openScene,
  runCourse,
  type Scene,
  shardOf,
  spanOf,
  unrecorded,
} from './course.ts';
import { sweepDead } from './leases.ts';
import { Losses } from './losses.ts';
import type { Buyer, Market } from './market.ts';
import { losesGateway, type Plan } from './plan.ts';
import { checkPromises } from './promises.ts';
import { becomeQuiet } from './quiet.ts';
import { checkRefunds, type GivenBack, giveBackAll } from './refunds.ts';
import { checkRefusals, checkTokens } from './refusals.ts';
import { checkRepeats } from './repeats.ts';
import type { Stack } from './stack.ts';
import { checkUncharged } from './uncharged.ts';

/** @param options.mayLose whether a failover may lose what a master has acknowledged */
export async function runSchedule(
  stack: Stack,
  market: Market,
  plan: Plan,
  { mayLose = true }: { readonly mayLose?: boolean } = {},
): Promise<Outcome> {
  const scene = { ...(await openScene(stack, market, plan, new Losses(mayLose))), given: [] };
  return runCourse(scene, {
    mayOverspend: false,
    load: () => load(scene),
    end: () => endSchedule(scene),
    judge: (evidence) => judgeSchedule(scene, evidence),
  });
}

/** `given` gets the refunds that were sent. */
type RefundScene = Scene & { readonly given: GivenBack[] };

/** Runs the callers and the faults of a plan. Where nodes fail, the callers go on until all nodes are back. */
async function load(scene: RefundScene): Promise<Told[]> {
  const { stack, market, plan, buyers, groups, losses, masters } = scene;
  const startedAt = performance.now();
  const { cluster } = stack;
  let nodesAreBack = plan.cluster === null;
  const isOver = (): boolean => nodesAreBack && performance.now() - startedAt >= plan.loadMs;
  const callers = callersOf(scene);
  const sufferAll = async (): Promise<void> => {
    if (cluster === null || masters === null || plan.cluster === null) return;
    await Promise.all(plan.cluster.map((fault) => suffer({ cluster, losses, masters, shards: groups, stack }, fault)));
    nodesAreBack = true;
  };
  await Promise.all([
    ...callers.map((caller) => caller.run(isOver)),
    ...plan.laterCredits.map(async ({ buyer, atMs, micros }, i) => {
      await sleep(atMs);
      const { key } = buyers[buyer] as Buyer;
      await market.creditUntilDone(buyers[buyer] as Buyer, micros, `later ${key.key_id} ${i}`);
    }),
    ...plan.changes.map(async (change) => {
      await sleep(change.atMs);
      await market.changeUntilDone(buyers[change.buyer] as Buyer, change);
    }),
    giveBackAll(market, plan.refunds, plan, { calls: () => callers.flatMap(({ told }) => told) }).then((given) => {
      scene.given.push(...given);
    }),
    inflictAll(scene),
    sufferAll(),
  ]);
  return callers.flatMap(({ told }) => told);
}

export const endSchedule = ({ stack, market, buyers }: Scene): Promise<void> =>
  becomeQuiet(stack, market, {
    // In a cluster each buyer's account is on a node of its own.
    buyers: stack.cluster === null ? [] : buyers,
    sweep: async () => {
      // As in the writer, where the sweep waits until holds of stored calls are gone.
      if (stack.cluster !== null) await compare(stack);
      await sweepDead(stack);
    },
  });

export async function judgeSchedule(scene: RefundScene, evidence: Evidence) {
  const { stack, market, plan, buyers, losses } = scene;
  const { told, held, before } = evidence;
  const mayBeLost = (accountId: string, fromMs: number, toMs: number, usageId: string): boolean =>
    losses.allow({ shard: shardOf(scene, accountId), fromMs, toMs, usageId });
  const mayVanish = (accountId: string, fromMs: number, toMs: number, usageId: string): boolean =>
    losses.mayVanish({ shard: shardOf(scene, accountId), fromMs, toMs, usageId });
  const [rows, seen] = [await readRecords(stack, buyers), readSeen(stack)];
  const promises = checkPromises({ told, rows, seen, held, losesGateway: losesGateway(plan), mayBeLost, mayVanish });
  const drifts = await compare(stack);
  const mayRowBeLost = ({ usageId, accountId }: Row): boolean =>
    mayBeLost(accountId, ...spanOf(usageId, told), usageId);
  const ofBuyer = async (buyer: Buyer): Promise<string[]> => {
    const { account_id: id } = buyer.key;
    const reported = drifts.find(({ accountId }) => accountId === id);
    const its = { mayBeLost: mayRowBeLost, reported };
    const ownTold = told.filter(({ accountId }) => accountId === id);
    return [
      ...(await checkBuyer(stack, buyer, { ...its, all: rows, listings: market.listings })),
      ...(await checkBudgets(stack, buyer, { ...its, rows, reported: reported?.budgetDrifts ?? [] })),
      ...checkRefusals(buyer, ownTold),
      ...checkChanges(buyer, rows, ownTold),
      ...(losses.mayHaveLost(shardOf(scene, id)) ? [] : await checkTerms(stack, buyer)),
      ...(mayForgetBuckets(plan) ? [] : checkTokens(buyer, ownTold)),
    ];
  };
  const ofOthers = drifts.filter(({ accountId }) => buyers.every(({ key }) => key.account_id !== accountId));
  const repairs = (await readRepairs(stack, before.lastRepair)).filter(({ accountId, reason }) => {
    const shard = shardOf(scene, accountId);
    return !losses.mayHaveLost(shard) && !(losses.concern(shard) && PROVEN_IN_A_CLUSTER.test(reason));
  });
  const gone = await unrecorded(stack, seen, evidence, mayBeLost);
  const faults = [
    ...promises.faults,
    ...checkRecords(rows, market, buyers, told),
    ...checkUncharged({ told, rows, listings: market.listings, mayBeForgotten: mayRowBeLost }),
    ...(await checkRefunds(stack, scene.given, rows)),
    ...(await checkRepeats(stack, buyers, {
      told,
      rows,
      seen,
      mayBeForgotten: (accountId, usageId) => mayBeLost(accountId, ...spanOf(usageId, told), usageId),
      mayLoseAnswers: mayLoseAnswers(plan),
      isOrdered: true,
    })),
    ...(await Promise.all(buyers.map(ofBuyer))).flat(),
    ...ofOthers.map((drift) => `drift of an account of an earlier schedule: ${JSON.stringify(drift)}`),
    ...repairs.map((repair) => `repaired: ${JSON.stringify(repair)}`),
    ...gone.map((id) => `served, but there is no record of ${id}`),
    ...notServed(told, scene),
  ];
  return { faults, rows, exceptions: promises.exceptions, drifts };
}

/** Another Redis, or one that has started again, loads the trees of keys again, with full buckets. */
const mayForgetBuckets = ({ faults, cluster }: Plan): boolean =>
  cluster !== null || faults.some((fault) => fault.kind === 'kill' && fault.who === 'redis');

/** Whether an answer may have to wait for Redis, or be lost with its gateway. */
const mayLoseAnswers = ({ faults, cluster }: Plan): boolean =>
  cluster !== null ||
  faults.some((fault) =>
    ['worker', 'gateway', 'redis', 'gateway-redis'].includes('link' in fault ? fault.link : fault.who),
  );

/** Why a wallet is repaired after a failover, even if nothing may be lost. */
const PROVEN_IN_A_CLUSTER = /holds belonged to calls that had ended|came back without credits/;

/**
 * Calls of accounts whose node had no fault must be served, where nothing else was broken. One call, and one more in fifty, may be
 * refused, because on a busy machine a node may seem silent for a moment. Without the node nearly all would be refused.
 */
function notServed(told: readonly Told[], scene: Scene): string[] {
  const { cluster, faults } = scene.plan;
  const [only, ...others] = cluster ?? [];
  if (only === undefined || others.length > 0 || faults.length > 0) return [];
  const ofOthers = told.filter(({ accountId, left }) => groupOf(scene, accountId) !== only.group && !left);
  const refused = ofOthers.filter(({ status, code }) => status === 0 || (status === 503 && code !== 'upstream_busy'));
  if (refused.length <= 1 + ofOthers.length / 50) return [];
  return [
    `${refused.length} of ${ofOthers.length} calls were refused, but their nodes were well: ${JSON.stringify(refused[0])}`,
  ];
}
