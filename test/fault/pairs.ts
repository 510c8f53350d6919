// Pairs of equal calls with one idempotency key, at two gateways at once, while gateways and the writer are killed and replies are lost.
// Each caller retries until it has the answer, as clients do. In the end each pair was charged once.

import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from '../../scripts/local/ports.mjs';
import { buildSources } from '../support/build.ts';
import { until } from '../support/wait.ts';
import type { Row } from './books.ts';
import { Caller, type Told } from './callers.ts';
import { type Outcome, openScene, runCourse, type Scene } from './course.ts';
import { Daemon } from './daemon.ts';
import { FaultProxy } from './fault-proxy.ts';
import { expire, sweepDead } from './leases.ts';
import { Losses, SETTLING_MS } from './losses.ts';
import type { Buyer, Market } from './market.ts';
import { type Asked, Notebook } from './notebook.ts';
import type { Plan } from './plan.ts';
import { Random } from './random.ts';
import { endSchedule, judgeSchedule } from './schedule.ts';
import type { Stack, Worker } from './stack.ts';
import { drawWish, IDEMPOTENCY_KEY, idempotencyKeyOf, isFreeOnly, refusalOf } from './wishes.ts';

/** Pairs that are under way together. */
const AT_ONCE = 10;
const BUYERS = 3;
/** A pair has its answers after this: a gateway takes 2 s to start again. */
const ANSWERED_WITHIN_MS = 30_000;
/** Most wait for the other call of their pair, or for what a fault has ended. */
const RETRY_MS = 30;
/** Enough for all calls of an account. */
const RATE_LIMIT = 1_000_000;
const CREDIT_MICROS = 900_000_000;

const FAULTS = [
  'none',
  'second gateway killed',
  'worker of the first gateway killed',
  'writer killed',
  'connections of callers cut',
  'a reply to a caller cut',
  'replies of redis late',
  'connections to redis cut',
] as const;
type PairFault = (typeof FAULTS)[number];

/** What a pair was told in the end. */
type Pair = { readonly asked: Asked; readonly answers: readonly [Told, Told] };

/** When a gateway was killed: in between. */
type Kill = { readonly fromMs: number; readonly toMs: number };

export type PairsOutcome = Outcome & { readonly pairs: readonly Pair[]; readonly faultsMade: readonly PairFault[] };

export async function runPairs(stack: Stack, market: Market, count: number, seed: number): Promise<PairsOutcome> {
  const [random, faults] = [new Random(seed), new Random(seed ^ 0xfa017)];
  const second = await SecondGateway.start(stack);
  const scene = { ...(await openScene(stack, market, planOf(seed), new Losses(false))), given: [] };
  const ids = scene.buyers.map(({ key }) => key.key_id);
  // No gateway knows these keys yet.
  await stack.stores.sql`UPDATE api_keys SET rate_limit = ${RATE_LIMIT} WHERE key_id = ANY(${ids})`;
  const pairs: Pair[] = [];
  const faultsMade: PairFault[] = [];
  const kills: Kill[] = [];
  const run = async (): Promise<Told[]> => {
    const callers = callersOf(scene, second);
    for (let from = 0; from < count; from += AT_ONCE) {
      const fault = faults.pick(FAULTS);
      faultsMade.push(fault);
      const asked = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_, i) => ask(scene, random, from + i));
      const [answered] = await Promise.all([
        Promise.all(asked.map((one, i) => answersOf(callers[i] as TwoCallers, one))),
        sleep(random.int(0, 60)).then(() => inflict(stack, second, fault, random, kills)),
      ]);
      pairs.push(...answered);
    }
    for (const caller of callers.flat()) caller.close();
    await second.stop();
    return callers.flat().flatMap(({ told }) => told);
  };
  try {
    const outcome = await runCourse(scene, {
      mayOverspend: false,
      load: run,
      end: () => endSchedule(scene),
      judge: (evidence) => judgeSchedule(scene, evidence),
    });
    return { ...outcome, faults: [...outcome.faults, ...checkPairs(pairs, outcome.rows, kills)], pairs, faultsMade };
  } finally {
    await second.stop();
  }
}

/** No faults at times of their own; but gateways are killed, so holds may be swept. */
const planOf = (seed: number): Plan => ({
  seed,
  loadMs: 0,
  creditsMicros: Array.from({ length: BUYERS }, () => CREDIT_MICROS),
  trees: Array.from({ length: BUYERS }, () => []),
  changes: [],
  refunds: [],
  laterCredits: [],
  callers: [],
  faults: [{ kind: 'kill', who: 'gateway', atMs: 0, forMs: 0, draw: 0 }],
  cluster: null,
});

type TwoCallers = readonly [Caller, Caller];

function callersOf({ stack, market, buyers }: Scene, second: SecondGateway): TwoCallers[] {
  const url = stack.link('caller-gateway').through(stack.gatewayUrl).replace(/\/$/, '');
  return Array.from({ length: AT_ONCE }, () => {
    const newCaller = (of: string): Caller => new Caller(of, buyers[0] as Buyer, market.listings, 0, new Notebook());
    return [newCaller(url), newCaller(second.url)] as const;
  });
}

/** A call that the service serves, so that it is charged. */
function ask({ market, buyers }: Scene, random: Random, nth: number): Asked {
  const { key } = random.pick(buyers);
  const marks = { idempotencyKey: String(nth), tag: null };
  for (;;) {
    const wish = drawWish(random, market.listings, marks);
    const isServed = /^\/(fast|slow|stream|large)(\/|$)/.test(wish.path) && refusalOf(wish) === null;
    if (isServed && !isFreeOnly(wish.path) && wish.headers[IDEMPOTENCY_KEY] !== undefined) return { key, wish };
  }
}

async function answersOf(callers: TwoCallers, asked: Asked): Promise<Pair> {
  const answers = await Promise.all([untilTold(callers[0], asked), untilTold(callers[1], asked)]);
  return { asked, answers };
}

/** Asks until there is an answer, or until it is certain that there is none. */
const untilTold = (caller: Caller, asked: Asked): Promise<Told> =>
  until(async () => {
    const told = await caller.call(asked);
    const isAnswer = told.complete && told.usageId !== null && told.status < 400;
    if (isAnswer || told.code === 'answer_not_kept') return told;
    await sleep(RETRY_MS);
    return null;
  }, ANSWERED_WITHIN_MS);

async function inflict(
  stack: Stack,
  second: SecondGateway,
  fault: PairFault,
  random: Random,
  kills: Kill[],
): Promise<void> {
  const fromMs = Date.now();
  const toCallers = [stack.link('caller-gateway'), second.toCallers];
  const toRedis = [stack.link('gateway-redis'), second.toRedis];
  switch (fault) {
    case 'none':
      return;
    case 'second gateway killed': {
      const { instance } = second;
      await second.daemon.kill();
      kills.push({ fromMs, toMs: Date.now() });
      await second.daemon.ensure();
      await expire(stack, instance);
      return;
    }
    case 'worker of the first gateway killed': {
      const { pid } = random.pick(stack.workers()) as Worker;
      process.kill(pid, 'SIGKILL');
      await until(() => stack.ended().some((worker) => worker.pid === pid));
      kills.push({ fromMs, toMs: Date.now() });
      await sweepDead(stack);
      return;
    }
    case 'writer killed':
      await stack.writer.kill();
      await stack.writer.ensure();
      return;
    case 'connections of callers cut':
      for (const link of toCallers) link.reset();
      return;
    case 'a reply to a caller cut':
      for (const link of toCallers) link.set({ kind: 'cut reply', part: random.next() });
      return;
    case 'replies of redis late':
      for (const link of toRedis) link.set({ kind: 'buffer', what: 'replies' });
      await sleep(random.int(50, 400));
      for (const link of toRedis) link.set({ kind: 'pass' });
      return;
    case 'connections to redis cut':
      for (const link of toRedis) link.reset();
  }
}

/**
 * Both callers of a pair have the answer to one call, and that call alone was charged. A gateway that is killed just after it has answered
 * leaves the call abandoned, so nothing is charged for that answer (docs/guarantees.md); it is kept for nobody else.
 */
export function checkPairs(pairs: readonly Pair[], rows: readonly Row[], kills: readonly Kill[]): string[] {
  const abandoned = new Set(rows.filter(({ outcome }) => outcome === 'abandoned').map(({ usageId }) => usageId));
  const wasKilledAfter = ({ usageId, isReplayed, endMs }: Told): boolean =>
    !isReplayed &&
    abandoned.has(usageId ?? '') &&
    kills.some(({ fromMs, toMs }) => endMs <= toMs && endMs >= fromMs - SETTLING_MS);
  return pairs.flatMap(({ asked, answers }) => {
    const name = idempotencyKeyOf(asked.wish.path);
    const charged = rows.filter(
      ({ path: of, keyId, outcome }) =>
        idempotencyKeyOf(of) === name && keyId === asked.key.key_id && outcome === 'completed',
    );
    const isRight =
      charged.length === 1 &&
      answers.every((told) => told.usageId === null || told.usageId === charged[0]?.usageId || wasKilledAfter(told));
    return isRight ? [] : [`a pair was charged ${charged.length} times: ${JSON.stringify({ charged, answers })}`];
  });
}

/** Another gateway of the same installation, in one process. */
class SecondGateway {
  readonly daemon: Daemon;
  readonly toCallers: FaultProxy;
  readonly toRedis: FaultProxy;
  readonly url: string;

  private constructor(daemon: Daemon, toCallers: FaultProxy, toRedis: FaultProxy, port: number) {
    this.daemon = daemon;
    this.toCallers = toCallers;
    this.toRedis = toRedis;
    this.url = toCallers.through(`http://127.0.0.1:${port}`).replace(/\/$/, '');
  }

  static async start(stack: Stack): Promise<SecondGateway> {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const [toCallers, toRedis] = [await FaultProxy.open(port), await FaultProxy.open(stack.redis.port)];
    const daemon = new Daemon({
      name: `fault-second-gateway-${process.pid}-${port}`,
      args: [path.join(buildSources(), 'main.js'), 'gateway'],
      env: {
        ...stack.directEnv,
        REDIS_URL: toRedis.through(stack.redis.url),
        REDIS_COMMAND_TIMEOUT_MS: '200',
        PORT: String(port),
        METRICS_PORT: String(metricsPort),
        ONE_PROCESS: 'on',
      },
      isReady: (output) => output.includes('"msg":"ready"}'),
    });
    await daemon.ensure();
    return new SecondGateway(daemon, toCallers, toRedis, port);
  }

  /** The pid of the process that was started last. */
  get instance(): string {
    const ready = this.daemon.output.split('\n').filter((line) => line.endsWith('"msg":"ready"}'));
    return (JSON.parse(ready.at(-1) as string) as Worker).instance;
  }

  async stop(): Promise<void> {
    await this.daemon.stop();
    await this.toCallers.close();
    await this.toRedis.close();
  }
}

/** What the pairs have met. */
export function describePairs({ pairs, told, rows, faultsMade }: PairsOutcome): string {
  const count = (what: (call: Told) => boolean): number => told.filter(what).length;
  const made = FAULTS.map((fault) => `${faultsMade.filter((one) => one === fault).length} ${fault}`);
  const ended = (outcome: string): number => rows.filter((row) => row.outcome === outcome).length;
  const got = pairs.flatMap(({ answers }) => answers);
  return [
    `${pairs.length} pairs, ${told.length} calls: ${ended('completed')} charged, ${ended('abandoned')} swept, ${rows.length} records`,
    `in the end ${got.filter(({ isReplayed }) => isReplayed).length} callers had a replay, ${got.filter(({ code }) => code !== null).length} answer_not_kept`,
    `on the way ${count(({ complete }) => !complete)} replies lost, ${count(({ code }) => code === 'call_in_progress')} call_in_progress, ${count(({ status, usageId }) => status === 503 && usageId === null)} 503`,
    `rounds: ${made.join(', ')}`,
  ].join('\n');
}
