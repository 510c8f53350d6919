// What every schedule does, whichever faults it has: load while a witness looks, quiet, and the books.

import { setTimeout as sleep } from 'node:timers/promises';
import type { Drift } from '../../src/ledger/reconcile/report.ts';
import { checkLedger, type Row, readRepairs, readSeen, takeOut } from './books.ts';
import { Caller, type Told } from './callers.ts';
import { Masters } from './cluster/masters.ts';
import { GROUPS } from './cluster/nodes.ts';
import { inflict } from './faults.ts';
import { type Losses, timeOf } from './losses.ts';
import type { Buyer, Market } from './market.ts';
import { Notebook } from './notebook.ts';
import type { Plan } from './plan.ts';
import { type Exception, LONGEST_CALL_MS } from './promises.ts';
import type { Stack } from './stack.ts';
import { Witness } from './witness.ts';

export type Outcome = {
  /** What is wrong, in words; empty when all is well. */
  readonly faults: readonly string[];
  readonly told: readonly Told[];
  readonly rows: readonly Row[];
  /** Admitted calls of child keys. */
  readonly ofChildren: number;
  readonly exceptions: ReadonlyMap<Exception, number>;
  readonly looks: number;
  /** How long calls were under way after the last fault had ended. */
  readonly recoveryMs: number;
  /** Money that wallets had too much or too little after a failover or in an older store, before it was taken out. */
  readonly driftMicros: number;
  /** Failovers that no fault asked for: a node had too little of the machine for its node timeout. */
  readonly unplanned: number;
};

/** What a schedule works on. */
export type Scene<P extends Plan = Plan> = {
  readonly stack: Stack;
  readonly market: Market;
  readonly plan: P;
  readonly buyers: readonly Buyer[];
  /** The shards of each group of nodes; empty if there is one Redis. */
  readonly groups: readonly ReadonlySet<number>[];
  /** What Redis may have lost. */
  readonly losses: Losses;
  /** Null: there is one Redis. */
  readonly masters: Masters | null;
};

/** What is known when nothing is under way any more, beside the stores. */
export type Evidence = {
  readonly told: readonly Told[];
  /** The calls whose hold was seen: usage id to account. */
  readonly held: ReadonlyMap<string, string>;
  readonly before: { readonly seen: ReadonlySet<string>; readonly lastRepair: number };
};

type Steps = {
  /** Whether wallets may be spent below zero for a while; as of `Witness`. */
  readonly mayOverspend: boolean;
  /** Runs callers and faults, and resolves when the last fault has ended. */
  readonly load: () => Promise<readonly Told[]>;
  /** Waits until nothing is under way. */
  readonly end: () => Promise<void>;
  /** Compares what callers, the service, Redis and Postgres know. */
  readonly judge: (evidence: Evidence) => Promise<{
    readonly faults: readonly string[];
    readonly rows: readonly Row[];
    readonly exceptions: ReadonlyMap<Exception, number>;
    readonly drifts: readonly Drift[];
  }>;
};

/** In a cluster each buyer's account is on a group of nodes of its own. */
export async function openScene<P extends Plan>(
  stack: Stack,
  market: Market,
  plan: P,
  losses: Losses,
): Promise<Scene<P>> {
  const { cluster } = stack;
  const groups = await readGroups(stack);
  const scene = { stack, market, plan, groups, losses };
  const isPlaced = (id: string, buyer: number): boolean => groupOf(scene, id) === buyer;
  const buyers = await market.buyers(plan, cluster === null ? undefined : isPlaced);
  const masters = cluster === null ? null : await Masters.look({ cluster, shards: groups, losses });
  return { ...scene, buyers, masters };
}

export async function runCourse(scene: Scene, steps: Steps): Promise<Outcome> {
  const { stack, market, buyers, losses, masters } = scene;
  const before = { seen: readSeen(stack), lastRepair: (await readRepairs(stack, 0)).at(-1)?.id ?? 0 };
  const witness = new Witness(stack, buyers, market.listings, steps.mayOverspend);
  const told = await stack.underWay.of('load', steps.load);
  const healedAt = performance.now();
  await stack.underWay.of('end', steps.end);
  const recoveryMs = performance.now() - healedAt;
  await stack.underWay.of('witness', witness.stop());
  await stack.cluster?.whole();
  await masters?.end();
  const { faults, rows, exceptions, drifts } = await stack.underWay.of('judge', () =>
    steps.judge({ told, held: witness.held, before }),
  );
  // What is reported stays until an operator takes it out. Then the wallets are what the journal says.
  await stack.underWay.of('take out', takeOut(stack, drifts));
  const seen = witness.faults((id) => losses.mayHaveLost(shardOf(scene, id)));
  return {
    faults: [...faults, ...seen, ...(await checkLedger(stack))],
    told,
    rows,
    ofChildren: rows.filter(({ keyId }) => buyers.every(({ key }) => key.key_id !== keyId)).length,
    exceptions,
    looks: witness.looks,
    recoveryMs,
    driftMicros: drifts.reduce((sum, drift) => sum + Math.abs(drift.driftMicros), 0),
    unplanned: masters?.unplanned ?? 0,
  };
}

/** The callers of a plan, before they begin. */
export function callersOf({ stack, market, plan, buyers }: Scene): Caller[] {
  const url = stack.link('caller-gateway').through(stack.gatewayUrl).replace(/\/$/, '');
  const notebooks = buyers.map(() => new Notebook());
  return plan.callers.map(
    ({ buyer, seed }) => new Caller(url, buyers[buyer] as Buyer, market.listings, seed, notebooks[buyer] as Notebook),
  );
}

/** The faults of parts and links, each at its time; resolves when the last is healed. */
export async function inflictAll({ stack, plan }: Scene): Promise<void> {
  const suffer = async (fault: Plan['faults'][number]): Promise<void> => {
    await sleep(fault.atMs);
    await stack.underWay.of(`fault ${JSON.stringify(fault)}`, async () => {
      const heal = await inflict(stack, fault);
      await sleep(fault.forMs);
      await heal();
    });
  };
  await Promise.all(plan.faults.map(suffer));
}

export const shardOf = ({ stack }: Pick<Scene, 'stack'>, accountId: string): number =>
  stack.stores.keys.shardOf(accountId);

/** Which group of nodes has the account. */
export const groupOf = (scene: Pick<Scene, 'stack' | 'groups'>, accountId: string): number =>
  scene.groups.findIndex((shards) => shards.has(shardOf(scene, accountId)));

/** Calls that reached the service but have no record, and whose loss `mayBeLost` does not excuse. */
export async function unrecorded(
  { stores }: Stack,
  seen: ReadonlySet<string>,
  { told, held, before }: Evidence,
  mayBeLost: MayBeLost,
): Promise<string[]> {
  const ids = [...seen].filter((id) => !before.seen.has(id));
  const rows = await stores.sql<{ id: string }[]>`
    SELECT id FROM unnest(${ids}::uuid[]) AS id WHERE NOT EXISTS (SELECT FROM calls WHERE usage_id = id)`;
  return rows.map(({ id }) => id).filter((id) => !isExcused(id, told, held, mayBeLost));
}

/** Whether a store may have lost a call of this account, which lasted from then to then. */
type MayBeLost = (accountId: string, fromMs: number, toMs: number, usageId: string) => boolean;

/** If nobody knows whose call it was: one that had no answer. */
function isExcused(
  usageId: string,
  told: readonly Told[],
  held: ReadonlyMap<string, string>,
  mayBeLost: MayBeLost,
): boolean {
  const known = told.find(({ requestId }) => requestId === usageId)?.accountId ?? held.get(usageId);
  if (known !== undefined) return mayBeLost(known, ...spanOf(usageId, told), usageId);
  const at = timeOf(usageId);
  return told.some(
    ({ requestId, accountId, atMs, endMs }) =>
      requestId === null && atMs <= at && at <= endMs + 100 && mayBeLost(accountId, atMs, endMs, usageId),
  );
}

/** When a call began and ended, as far as it is known. */
export function spanOf(usageId: string, told: readonly Told[]): [fromMs: number, toMs: number] {
  const call = told.find(({ requestId }) => requestId === usageId);
  const admittedAtMs = timeOf(usageId);
  return call === undefined ? [admittedAtMs, admittedAtMs + LONGEST_CALL_MS] : [call.atMs, call.endMs];
}

/** The shards of each group of nodes, as they are before the schedule. */
async function readGroups({ cluster, slots }: Stack): Promise<ReadonlySet<number>[]> {
  if (cluster === null) return [];
  const groups = await cluster.groups();
  return Array.from({ length: GROUPS }, (_, group) => {
    const shards = slots.flatMap((slot, shard) => (groups[slot] === group ? [shard] : []));
    return new Set(shards);
  });
}
