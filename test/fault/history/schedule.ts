// One history: load, credits and debits, faults of the stores one after the other, and the end, which must be exact except for what a
// fault took from the last store that had it.

import { setTimeout as sleep } from 'node:timers/promises';
import { checkRecords, compare, type Row, readRecords, readRepairs, readSeen, takeOut } from '../books.ts';
import { checkBudgets } from '../budgets.ts';
import type { Told } from '../callers.ts';
import type { Clocked } from '../clocks/clocks.ts';
import { suffer } from '../cluster/faults.ts';
import {
  callersOf,
  type Evidence,
  inflictAll,
  type Outcome,
  openScene,
  runCourse,
  type Scene,
  shardOf,
  spanOf,
  unrecorded,
} from '../course.ts';
import { sweepAll } from '../leases.ts';
import { Losses } from '../losses.ts';
import type { Buyer, Market } from '../market.ts';
import { losesGateway } from '../plan.ts';
import { checkPromises } from '../promises.ts';
import { becomeQuiet } from '../quiet.ts';
import { checkRefunds, type GivenBack, giveBackAll } from '../refunds.ts';
import { checkRefusals } from '../refusals.ts';
import { checkRepeats } from '../repeats.ts';
import type { Stack } from '../stack.ts';
import { checkUncharged } from '../uncharged.ts';
import { checkBalances } from './balances.ts';
import { sufferClocks } from './clock-faults.ts';
import { GivenUp } from './given-up.ts';
import { amountsOf, checkMoves, isDriftOfMoves, type Move, movesOf, readPosted } from './money.ts';
import { type HistoryPlan, isOfPostgres, isOfRedis } from './plan.ts';
import { preparePostgres, sufferPostgres } from './postgres-faults.ts';
import { needsReplica, sufferRedis } from './redis-faults.ts';
import { checkWallet } from './wallets.ts';
import { sufferWriters } from './writer-faults.ts';

type HistoryScene = Scene<HistoryPlan> & {
  readonly moves: Move[];
  /** The refunds that were sent. */
  readonly given: GivenBack[];
  /** What was lost with a Postgres. */
  readonly givenUp: GivenUp;
};

export async function runHistory(stack: Stack, market: Market, plan: HistoryPlan): Promise<Outcome> {
  const { history } = plan;
  stack.hasTwoWriters = history.hasTwoWriters;
  await (history.hasTwoWriters ? stack.secondWriter.ensure() : stack.secondWriter.stop());
  const [firstOfPostgres] = history.stores.filter(isOfPostgres);
  if (stack.cluster === null && plan.history.stores.some((fault) => isOfRedis(fault) && needsReplica(fault)))
    await stack.redisPair.follow();
  if (firstOfPostgres !== undefined) await preparePostgres(stack.postgresPair, firstOfPostgres);
  const losses = new Losses(true);
  const opened = await openScene(stack, market, plan, losses);
  const moves = opened.buyers.map(({ key, creditedMicros: micros }, i): Move => {
    const reference = `first ${key.key_id} ${i}`;
    return { accountId: key.account_id, reference, micros, atMs: 0, endMs: 0, isDone: true };
  });
  const givenUp = new GivenUp();
  const scene = { ...opened, moves, given: [], givenUp };
  const outcome = await runCourse(scene, {
    mayOverspend: true,
    load: () => load(scene),
    end: () => endHistory(scene),
    judge: (evidence) => judge(scene, evidence),
  });
  const { faults } = outcome;
  return { ...outcome, faults: faults.length === 0 ? [] : [...faults, ...losses.describe(), ...givenUp.diary] };
}

/** Runs callers, credits, debits and faults. The callers go on until the last fault has ended. */
async function load(scene: HistoryScene): Promise<Told[]> {
  const { stack, market, plan, buyers, moves } = scene;
  const { history } = plan;
  const startedAt = performance.now();
  let healedMs = Number.POSITIVE_INFINITY;
  const isOver = (): boolean => Date.now() >= healedMs && performance.now() - startedAt >= plan.loadMs;
  const callers = callersOf(scene);
  const moving = new Map<string, number>();
  const move = async (at: number, buyer: number, micros: number, reference: string): Promise<void> => {
    const of = buyers[buyer] as Buyer;
    const id = of.key.account_id;
    moving.set(id, (moving.get(id) ?? 0) + 1);
    await sleep(at);
    const { underWay } = stack;
    const began = { accountId: id, reference, micros, atMs: Date.now() };
    try {
      const isDone =
        micros > 0
          ? await underWay.of(reference, market.creditUntilDone(of, micros, reference)).then(() => true)
          : await underWay.of(reference, market.debitUntilDone(of, -micros, reference));
      moves.push({ ...began, endMs: Date.now(), isDone });
    } finally {
      moving.set(id, (moving.get(id) as number) - 1);
    }
  };
  const id = buyers[0]?.key.key_id;
  const faults = Promise.all([
    sufferStores(scene),
    sufferWriters(stack, history.writers),
    sufferClocks(stack, history.clocks),
    inflictAll(scene),
  ]).finally(() => {
    healedMs = Date.now();
  });
  await Promise.all([
    faults.then(() => stack.underWay.of('end drifts', endDrifts(stack, moving))),
    ...callers.map((caller) => stack.underWay.of('caller', caller.run(isOver))),
    ...plan.laterCredits.map(({ buyer, atMs, micros }, i) => move(atMs, buyer, micros, `later ${id} ${i}`)),
    giveBackAll(market, plan.refunds, plan, {
      calls: () => callers.flatMap(({ told }) => told),
      isGivenUp: (sinceMs) => Math.min(sinceMs, Date.now() - healedMs) > STORED_WITHIN_MS,
    }).then((given) => scene.given.push(...given)),
    ...history.debits.map(({ buyer, atMs, micros }, i) => move(atMs, buyer, -micros, `debit ${id} ${i}`)),
  ]);
  return callers.flatMap(({ told }) => told);
}

/** After the last fault; a call that is not there by then may be lost. */
const STORED_WITHIN_MS = 2_000;
const LOOKS_EVERY_MS = 500;

/**
 * Ends the drift of a wallet that is ahead of Postgres, as an operator does if a debit waits for that. Only once the right Postgres is
 * back, or another one was accepted.
 *
 * @param moving  how many credits and debits of each account are not confirmed yet
 */
async function endDrifts(stack: Stack, moving: ReadonlyMap<string, number>): Promise<void> {
  const isMoving = ({ accountId }: { readonly accountId: string }): boolean => (moving.get(accountId) ?? 0) > 0;
  for (;;) {
    await sleep(LOOKS_EVERY_MS);
    if (![...moving.keys()].some((accountId) => isMoving({ accountId }))) return;
    const ahead = (await compare(stack)).filter(({ notRepaired }) => notRepaired.includes('does not know'));
    await takeOut(stack, ahead.filter(isMoving));
  }
}

async function sufferStores(scene: HistoryScene): Promise<void> {
  const { stack, plan, losses, masters, groups, buyers, givenUp } = scene;
  const { stores } = plan.history;
  const accountIds = buyers.map(({ key }) => key.account_id);
  const firstOfPostgres = stores.findIndex(isOfPostgres);
  for (const [at, fault] of stores.entries()) {
    await sleep(fault.atMs);
    const { underWay } = stack;
    if (isOfPostgres(fault)) {
      const ofPostgres = { stack, pair: stack.postgresPair, givenUp, accountIds };
      await underWay.of(fault.kind, sufferPostgres(ofPostgres, fault, at === firstOfPostgres));
    } else if (isOfRedis(fault)) {
      await underWay.of(fault.kind, sufferRedis(scene, fault));
    } else if (stack.cluster !== null && masters !== null) {
      await suffer({ cluster: stack.cluster, losses, masters, shards: groups, stack }, { ...fault, atMs: 0 });
      await stack.cluster.whole();
    }
  }
}

/** What is known of an account, for the report of a failure. */
async function storyOf({ stores }: Stack, rows: readonly Row[], moves: readonly Move[]): Promise<string> {
  const [id = moves[0]?.accountId ?? ''] = rows.map(({ accountId }) => accountId);
  const repairs = await stores.sql`
    SELECT id, state, reason, change, before, after, created_at, ended_at FROM repairs WHERE account_id = ${id} ORDER BY id`;
  const debits =
    await stores.sql`SELECT seq, amount, total_before, reference, state FROM debits WHERE account_id = ${id}`;
  const calls = rows
    .map(
      ({ usageId, outcome, amountMicros, authorizedMicros, admittedAtMs }) =>
        `${new Date(admittedAtMs).toISOString().slice(14, 23)} ${usageId} ${outcome} ${amountMicros} of ${authorizedMicros}`,
    )
    .sort();
  const wallet = await stores.redis.command('hgetall', [stores.keys.wallet(stores.keys.shardOf(id), id)]);
  return [
    `repairs ${JSON.stringify(repairs)}`,
    `moves ${JSON.stringify(moves)}`,
    `debits ${JSON.stringify(debits)}`,
    `wallet ${JSON.stringify(wallet)}`,
    ...calls,
  ].join('\n');
}

/** Longer than the writer leaves a begun debit alone (`LEFT_ALONE_SECONDS`), and its next round. */
const DEBITS_MS = 9_000;

/**
 * If an older Postgres lacks the outcome of a debit that the wallet has decided, the debit is begun there, and the writer ends it some
 * seconds later. One that no wallet can decide stays begun, and is no movement.
 */
async function endDebits({ stores }: Stack): Promise<void> {
  const begun = async (): Promise<number> => (await stores.sql`SELECT FROM debits WHERE state = 'begun'`).length;
  for (const deadline = performance.now() + DEBITS_MS; (await begun()) > 0 && performance.now() < deadline; )
    await sleep(50);
}

async function endHistory({ stack, market, buyers }: HistoryScene): Promise<void> {
  let hasFreshConnections = false;
  const { underWay } = stack;
  await becomeQuiet(stack, market, {
    buyers,
    sweep: async () => {
      // An older Redis has holds of connections that no gateway knows any more; of those that it knows it renews the leases.
      if (!hasFreshConnections) await underWay.of('reconnect', stack.reconnectGateway());
      hasFreshConnections = true;
      await underWay.of('compare', compare(stack));
      await underWay.of('sweep', sweepAll(stack));
    },
  });
  await endDebits(stack);
}

/** For each key: how much of its calls was given back. */
const refundsOf = (given: readonly GivenBack[], moves: readonly Move[], givenUp: GivenUp) =>
  moves.flatMap((move) => {
    const keyId = given.find(({ reference }) => reference === move.reference)?.keyId;
    return keyId === undefined ? [] : amountsOf(move, givenUp).map((micros) => ({ keyId, micros }));
  });

/** Compares what callers, operators, the service, Redis and Postgres know. */
async function judge(scene: HistoryScene, evidence: Evidence) {
  const { stack, market, plan, buyers, losses, givenUp, given } = scene;
  const moves = [...scene.moves, ...movesOf(given)];
  const { told, before } = evidence;
  // An older Redis has holds of earlier schedules, too. Their accounts are compared.
  const ids = new Set(buyers.map(({ key }) => key.account_id));
  const held = new Map([...evidence.held].filter(([, accountId]) => ids.has(accountId)));
  /** Whether a store lost it for good. */
  const mayBeLost = (accountId: string, fromMs: number, toMs: number, usageId: string): boolean =>
    givenUp.calls.has(usageId) || losses.allow({ shard: shardOf(scene, accountId), fromMs, toMs, usageId });
  const [rows, seen] = [await readRecords(stack, buyers), readSeen(stack)];
  const drifts = await compare(stack);
  const promises = checkPromises({
    told,
    rows,
    seen,
    held,
    mayBeLost,
    losesGateway: losesGateway(plan),
    mayVanish: mayBeLost,
    mayBeNegative: true,
  });
  const isClockWrong = (of: Clocked): boolean => plan.history.clocks.some(({ whose }) => whose.includes(of));
  /** Whether the claim of a call may be lost, or its record. A clock that is more than a day ahead ends all claims. */
  const isForgotten = (accountId: string, usageId: string): boolean => {
    const [fromMs, toMs] = spanOf(usageId, told);
    const isLost = losses.mayForget({ shard: shardOf(scene, accountId), fromMs, toMs });
    return isClockWrong('redis') || isLost || mayBeLost(accountId, fromMs, toMs, usageId);
  };
  /** Whether a wallet may have been without it for a while. */
  const wasAbsent = (row: Row): boolean =>
    givenUp.absentCalls.has(row.usageId) || mayBeLost(row.accountId, ...spanOf(row.usageId, told), row.usageId);
  /** A credit reaches a wallet some time after it was confirmed, when Redis is away. The first ones are in Postgres before it is. */
  const wasMoveAbsent = ({ reference, accountId, micros, atMs, endMs }: Move): boolean =>
    givenUp.absentMoves.has(reference) ||
    givenUp.unconfirmedMoves.has(reference) ||
    (micros > 0 && atMs > 0 && losses.concern(shardOf(scene, accountId))) ||
    losses.allow({ shard: shardOf(scene, accountId), fromMs: atMs, toMs: endMs });
  const posted = await readPosted(stack, buyers);
  const byId = new Map(rows.map((row) => [row.usageId, row]));
  const ofBuyer = async (buyer: Buyer): Promise<string[]> => {
    const { account_id: id } = buyer.key;
    const own = rows.filter(({ accountId }) => accountId === id);
    const ownMoves = moves.filter(({ accountId }) => accountId === id);
    const movedMicros = [...posted.values()].reduce((sum, it) => sum + (it.accountId === id ? it.micros : 0), 0);
    const overspentMicros =
      own.filter(wasAbsent).reduce((sum, { amountMicros }) => sum + amountMicros, 0) +
      ownMoves.filter(wasMoveAbsent).reduce((sum, { micros }) => sum + Math.abs(micros), 0);
    const drift = drifts.find(({ accountId }) => accountId === id);
    const forgotten = own.filter(wasAbsent).map(({ amountMicros }) => amountMicros);
    const isAnyGivenUp = ownMoves.some(
      ({ reference }) => givenUp.moves.has(reference) || givenUp.unconfirmedMoves.has(reference),
    );
    const isOfMoves = drift !== undefined && isDriftOfMoves(drift, ownMoves, givenUp, forgotten);
    const evidence = {
      rows: own,
      listings: market.listings,
      movedMicros,
      overspentMicros,
      reported: isOfMoves ? drift : null,
      mayBeForgotten: wasAbsent,
    };
    const toldOwn = told.filter(({ accountId }) => accountId === id);
    const budgets = await checkBudgets(stack, buyer, {
      rows,
      mayBeLost: wasAbsent,
      reported: isOfMoves ? drift.budgetDrifts : [],
      gone: givenUp.lostMicros(id),
      doubtfulRefunds: isAnyGivenUp ? refundsOf(given, ownMoves, givenUp) : [],
      wasAhead: isClockWrong('redis'),
    });
    const balances = checkBalances({
      buyer,
      told: toldOwn,
      rows: byId,
      moves: ownMoves,
      isMoveForgotten: wasMoveAbsent,
      mayBeForgotten: (call) => wasAbsent(byId.get(call.requestId ?? '') as Row),
    });
    const unexplained =
      drift === undefined || isOfMoves ? [] : [`drift: ${JSON.stringify(drift)}`, await storyOf(stack, own, ownMoves)];
    const ofWallet = await checkWallet(stack, id, evidence);
    return [...ofWallet, ...budgets, ...checkRefusals(buyer, toldOwn), ...balances, ...unexplained];
  };
  const repairs = (await readRepairs(stack, before.lastRepair)).filter(({ accountId }) => !mayBeRepaired(accountId));
  const gone = await unrecorded(stack, seen, { told, held, before }, mayBeLost);
  const faults = [
    ...promises.faults,
    ...checkRecords(rows, market, buyers, told),
    ...checkUncharged({ told, rows, listings: market.listings, mayBeForgotten: wasAbsent }),
    ...checkMoves(moves, posted, givenUp.moves),
    ...(await checkRefunds(
      stack,
      given,
      rows,
      (reference) => givenUp.moves.has(reference) || givenUp.absentMoves.has(reference),
    )),
    ...(await checkRepeats(stack, buyers, {
      told,
      rows,
      seen,
      mayBeForgotten: isForgotten,
      mayLoseAnswers: true,
      isOrdered: !isClockWrong('redis'),
    })),
    ...givenUp.missing(new Map(rows.map(({ usageId, amountMicros }) => [usageId, amountMicros]))),
    ...(await Promise.all(buyers.map(ofBuyer))).flat(),
    ...drifts.filter(isOfEarlier).map((drift) => `drift of an earlier history: ${JSON.stringify(drift)}`),
    ...repairs.map((repair) => `repaired for no reason: ${JSON.stringify(repair)}`),
    ...gone.map((id) => `served, but there is no record of ${id}`),
  ];
  return { faults, rows, exceptions: promises.exceptions, drifts };

  function isOfEarlier({ accountId }: { readonly accountId: string }): boolean {
    return buyers.every(({ key }) => key.account_id !== accountId);
  }

  /** Only what Redis may have changed is repaired; and with a Postgres that was accepted, everything. */
  function mayBeRepaired(accountId: string): boolean {
    return losses.concern(shardOf(scene, accountId)) || plan.history.stores.some(isOfPostgres);
  }
}
