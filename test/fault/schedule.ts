// One schedule: load, faults, healing, and the books.

import { setTimeout as sleep } from 'node:timers/promises';
import {
  checkBuyer,
  checkLedger,
  checkRecords,
  compare,
  type Row,
  readRecords,
  readRepairs,
  readSeen,
  takeOut,
} from './books.ts';
import { Caller, type Told } from './callers.ts';
import { suffer } from './cluster/faults.ts';
import { Masters } from './cluster/masters.ts';
import { GROUPS } from './cluster/nodes.ts';
import { type Heal, inflict } from './faults.ts';
import { sweepDead } from './leases.ts';
import { Losses, timeOf } from './losses.ts';
import type { Buyer, Market } from './market.ts';
import { losesGateway, type Plan } from './plan.ts';
import { checkPromises, type Exception, LONGEST_CALL_MS } from './promises.ts';
import { becomeQuiet } from './quiet.ts';
import type { Stack } from './stack.ts';
import { Witness } from './witness.ts';

export type Outcome = {
  /** What is wrong, in words; empty when all is well. */
  readonly faults: readonly string[];
  readonly told: readonly Told[];
  readonly rows: readonly Row[];
  readonly exceptions: ReadonlyMap<Exception, number>;
  readonly looks: number;
  /** From the end of the last fault until nothing was under way any more. */
  readonly recoveryMs: number;
  /** Money that wallets had too much after a failover, before it was taken out. */
  readonly driftMicros: number;
  /** Failovers that no fault asked for: a node had too little of the machine for its node timeout. */
  readonly unplanned: number;
};

/** @param options.mayLose whether a failover may lose what a master has acknowledged */
export async function runSchedule(
  stack: Stack,
  market: Market,
  plan: Plan,
  { mayLose = true }: { readonly mayLose?: boolean } = {},
): Promise<Outcome> {
  const groups = await readGroups(stack);
  const groupOf = (id: string): number => groups.findIndex((shards) => shards.has(stack.stores.keys.shardOf(id)));
  const buyers = await market.buyers(plan, plan.cluster === null ? undefined : (id, buyer) => groupOf(id) === buyer);
  const losses = new Losses(mayLose);
  const masters = await lookAtMasters(stack, groups, losses);
  const scene = { stack, market, plan, buyers, groups, losses, masters };
  const before = {
    seen: readSeen(stack),
    lastRepair: (await readRepairs(stack, 0)).at(-1)?.id ?? 0,
  };
  const witness = new Witness(stack, buyers, market.listings);
  const told = await load(scene);
  const healedAt = performance.now();
  await becomeQuiet(stack, market, {
    // In a cluster each buyer's account is on a node of its own.
    buyers: stack.cluster === null ? [] : buyers,
    sweep: async () => {
      // As in the writer, where the sweep waits until holds of stored calls are gone.
      if (stack.cluster !== null) await compare(stack);
      await sweepDead(stack);
    },
  });
  const recoveryMs = performance.now() - healedAt;
  await witness.stop();
  await stack.cluster?.whole();
  await masters?.end();
  const { faults, rows, exceptions, drifts } = await judge({ ...scene, told, held: witness.held, before });
  faults.push(
    ...witness.faults((id) => losses.mayHaveLost(stack.stores.keys.shardOf(id))),
    ...notServed(told, plan, groupOf),
  );
  // What is reported stays until an operator takes it out. Then the wallets are what the journal says.
  await takeOut(stack, drifts);
  faults.push(...(await checkLedger(stack)));
  const driftMicros = drifts.reduce((sum, drift) => sum + drift.driftMicros, 0);
  return {
    faults,
    told,
    rows,
    exceptions,
    looks: witness.looks,
    recoveryMs,
    driftMicros,
    unplanned: masters?.unplanned ?? 0,
  };
}

type Aftermath = Scene & {
  readonly told: readonly Told[];
  readonly held: ReadonlyMap<string, string>;
  readonly before: { readonly seen: ReadonlySet<string>; readonly lastRepair: number };
};

/** Compares what callers, the service, Redis and Postgres know. */
async function judge({ stack, market, plan, buyers, losses, told, held, before }: Aftermath) {
  const shardOf = (accountId: string): number => stack.stores.keys.shardOf(accountId);
  const mayBeLost = (accountId: string, fromMs: number, toMs: number): boolean =>
    losses.allow({ shard: shardOf(accountId), fromMs, toMs });
  const mayVanish = (accountId: string, fromMs: number, toMs: number): boolean =>
    losses.mayVanish({ shard: shardOf(accountId), fromMs, toMs });
  const [rows, seen] = [await readRecords(stack, buyers), readSeen(stack)];
  const promises = checkPromises({ told, rows, seen, held, losesGateway: losesGateway(plan), mayBeLost, mayVanish });
  const drifts = await compare(stack);
  const ofBuyer = (buyer: Buyer): Promise<string[]> =>
    checkBuyer(stack, buyer, {
      all: rows,
      listings: market.listings,
      mayBeLost: ({ usageId, accountId }) => mayBeLost(accountId, ...spanOf(usageId, told)),
      reported: drifts.find(({ accountId }) => accountId === buyer.key.account_id),
    });
  const ofOthers = drifts.filter(({ accountId }) => buyers.every(({ key }) => key.account_id !== accountId));
  const repairs = (await readRepairs(stack, before.lastRepair)).filter(({ accountId, reason }) => {
    const shard = shardOf(accountId);
    return !losses.mayHaveLost(shard) && !(losses.concern(shard) && PROVEN_IN_A_CLUSTER.test(reason));
  });
  const gone = (await unrecorded(stack, seen, before.seen)).filter((id) => !isExcused(id, told, held, mayBeLost));
  const faults = [
    ...promises.faults,
    ...checkRecords(rows, market.listings, told),
    ...(await Promise.all(buyers.map(ofBuyer))).flat(),
    ...ofOthers.map((drift) => `drift of an account of an earlier schedule: ${JSON.stringify(drift)}`),
    ...repairs.map((repair) => `repaired: ${JSON.stringify(repair)}`),
    ...gone.map((id) => `served, but there is no record of ${id}`),
  ];
  return { faults, rows, exceptions: promises.exceptions, drifts };
}

/** Why a wallet is repaired after a failover, even if nothing may be lost. */
const PROVEN_IN_A_CLUSTER = /holds belonged to calls that Postgres has stored|came back without credits/;

type Scene = {
  readonly stack: Stack;
  readonly market: Market;
  readonly plan: Plan;
  readonly buyers: readonly Buyer[];
  readonly groups: readonly ReadonlySet<number>[];
  readonly losses: Losses;
  readonly masters: Masters | null;
};

/** Runs the callers and the faults of a plan. Where nodes fail, the callers go on until all nodes are back. */
async function load({ stack, market, plan, buyers, groups, losses, masters }: Scene): Promise<Told[]> {
  const startedAt = performance.now();
  const { cluster } = stack;
  let nodesAreBack = plan.cluster === null;
  const isOver = (): boolean => nodesAreBack && performance.now() - startedAt >= plan.loadMs;
  const url = stack.link('caller-gateway').through(stack.gatewayUrl).replace(/\/$/, '');
  const callers = plan.callers.map(({ buyer, seed }) => new Caller(url, buyers[buyer] as Buyer, market.listings, seed));
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
    ...plan.faults.map(async (fault) => {
      await sleep(fault.atMs);
      const heal: Heal = await inflict(stack, fault);
      await sleep(fault.forMs);
      await heal();
    }),
    sufferAll(),
  ]);
  return callers.flatMap(({ told }) => told);
}

/** Calls that reached the service but have no record. */
export async function unrecorded(
  { stores }: Stack,
  seen: ReadonlySet<string>,
  before: ReadonlySet<string>,
): Promise<string[]> {
  const ids = [...seen].filter((id) => !before.has(id));
  const rows = await stores.sql<{ id: string }[]>`
    SELECT id FROM unnest(${ids}::uuid[]) AS id WHERE NOT EXISTS (SELECT FROM calls WHERE usage_id = id)`;
  return rows.map(({ id }) => id);
}

/** From when to when a call lasted, as far as it is known. */
export function spanOf(usageId: string, told: readonly Told[]): [fromMs: number, toMs: number] {
  const call = told.find(({ requestId }) => requestId === usageId);
  const admittedAtMs = timeOf(usageId);
  return call === undefined ? [admittedAtMs, admittedAtMs + LONGEST_CALL_MS] : [call.atMs, call.endMs];
}

/** Whether a failover may have lost a call that the service has seen. If nobody knows whose call it was: one that had no answer. */
export function isExcused(
  usageId: string,
  told: readonly Told[],
  held: ReadonlyMap<string, string>,
  mayBeLost: (accountId: string, fromMs: number, toMs: number, usageId: string) => boolean,
): boolean {
  const known = told.find(({ requestId }) => requestId === usageId)?.accountId ?? held.get(usageId);
  if (known !== undefined) return mayBeLost(known, ...spanOf(usageId, told), usageId);
  const at = timeOf(usageId);
  return told.some(
    ({ requestId, accountId, atMs, endMs }) =>
      requestId === null && atMs <= at && at <= endMs + 100 && mayBeLost(accountId, atMs, endMs, usageId),
  );
}

/**
 * Calls of accounts whose node had no fault must be served. This is known only where nothing else was broken. One in fifty may be
 * refused, because a busy machine lets a node look silent for a moment; without a node nearly all would be.
 */
function notServed(told: readonly Told[], { cluster, faults }: Plan, groupOf: (accountId: string) => number): string[] {
  const [only, ...others] = cluster ?? [];
  if (only === undefined || others.length > 0 || faults.length > 0) return [];
  const ofOthers = told.filter(({ accountId, left }) => groupOf(accountId) !== only.group && !left);
  const refused = ofOthers.filter(({ status, code }) => status === 0 || (status === 503 && code !== 'upstream_busy'));
  if (refused.length <= ofOthers.length / 50) return [];
  return [
    `${refused.length} of ${ofOthers.length} calls were refused, but their nodes were well: ${JSON.stringify(refused[0])}`,
  ];
}

/** Looks at a cluster at the start of a schedule, when it is whole. Null: there is one Redis. */
export const lookAtMasters = async (
  { cluster }: Stack,
  shards: readonly ReadonlySet<number>[],
  losses: Losses,
): Promise<Masters | null> => (cluster === null ? null : Masters.look({ cluster, shards, losses }));

/** The shards of each group of nodes, as they are before the schedule. */
export async function readGroups({ cluster, slots }: Stack): Promise<ReadonlySet<number>[]> {
  if (cluster === null) return [];
  const groups = await cluster.groups();
  return Array.from({ length: GROUPS }, (_, group) => {
    const shards = slots.flatMap((slot, shard) => (groups[slot] === group ? [shard] : []));
    return new Set(shards);
  });
}
