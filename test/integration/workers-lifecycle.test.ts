import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { freePort, isPortFree } from '../../scripts/local/ports.mjs';
import { buildSources } from '../support/build.ts';
import { until } from '../support/wait.ts';
import { keysForFullLoad, Load, type Phase } from './load.ts';
import type { Key } from './market-client.ts';
import { startService, type TestService } from './marketplace.ts';
import { RawCaller, requestText } from './raw-caller.ts';
import { isAlive, type LogLine, SupervisorProcess, WorkerStack } from './worker-stack.ts';

const PRICE_MICROS = 1_000;
const CALLERS = 24;
/** Callers that call again as soon as they are answered: more load than two workers on a small machine can take. */
const FULL_LOAD = { callers: CALLERS, keysEach: 15, balanceMicros: 10_000_000 };
/** Between the calls of a caller while a process only starts. */
const LIGHT_PAUSE_MS = 50;
const NAMES = ['writer', '1', '2'];
/** How far a call may get that meets a stopping gateway: nobody listens, or its connection is just being closed. */
const BEFORE_ADMISSION: readonly Phase[] = ['not connected', 'not sent', 'no answer'];

let build: string;
let stack: WorkerStack;
let service: TestService;
let path: string;
/** A listing of the same service as an MCP server, at the same price for each call of a tool. */
let tools: string;
/** A listing whose calls are answered at once. */
let fast: string;
/** A listing whose calls are answered at once, with each kind of framing in turn. */
let anyShape: string;
/** Calls to `/wait`, which the service answers when the test tells it to. */
let waiting: ServerResponse[];

beforeAll(async () => {
  build = buildSources();
  stack = await WorkerStack.start(build, { INSTANCE_LEASE_SECONDS: '10' });
  service = await startService((request, response) => {
    if (request.url === '/wait') waiting.push(response);
    else if (request.url === '/fast') response.end('ok');
    else if (request.url === '/shapes') answerInTurn(response);
    // No key exceeds 300 calls a minute, however long the test takes, and a call is always under way.
    else setTimeout(() => response.end('ok'), 200);
  });
  path = await stack.service({ endpoint: service.url, price: PRICE_MICROS / 1e6 });
  tools = await stack.service({ endpoint: service.url, price: PRICE_MICROS / 1e6, protocol: 'mcp' });
  // The newest listing is the last that a worker hears of.
  await stack.listedEverywhere(tools);
  fast = `${stack.baseUrl}${path}/fast`;
  anyShape = `${stack.baseUrl}${path}/shapes`;
});
beforeEach(() => {
  waiting = [];
});
afterAll(async () => {
  await stack.stop();
  await service.close();
});

let shapes = 0;

/** Responses with a length, in chunks, and without a body, because the gateway ends each of these differently. */
function answerInTurn(response: ServerResponse): void {
  const shape = shapes++ % 3;
  if (shape === 1) response.write('in ');
  response.end(shape === 2 ? '' : 'turn');
}

const pids = (): number[] => NAMES.map((name) => stack.supervisor.pidOf(name));

/** Keys of one account, one for each caller. */
async function keysOfOne(): Promise<Key[]> {
  const key = await stack.buyer(10);
  return [key, ...(await Promise.all(Array.from({ length: CALLERS - 1 }, () => stack.anotherKey(key))))];
}

type Bill = { readonly usage_id: string; readonly outcome: string; readonly amount: number };

const billsOf = async (key: Key): Promise<Bill[]> =>
  stack.stores.sql<Bill[]>`SELECT usage_id, outcome, amount::int FROM calls WHERE account_id = ${key.account_id}`;

/** Expects a record of every answered call, and a wallet that lacks exactly the sum of the charges. */
async function expectRightBooks(key: Key, answered: readonly string[]): Promise<void> {
  await stack.settled(key.account_id);
  const bills = await billsOf(key);
  const completed = new Set(bills.filter(({ outcome }) => outcome === 'completed').map(({ usage_id }) => usage_id));
  expect(answered.filter((id) => !completed.has(id))).toEqual([]);
  const charged = bills.reduce((sum, { amount }) => sum + amount, 0);
  expect(charged).toBe(completed.size * PRICE_MICROS);
  expect(await stack.balance(key)).toMatchObject({ balance: (10e6 - charged) / 1e6, held: 0 });
  expect(await stack.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
}

/**
 * Expects the same of callers with their own accounts when no process was killed: a call has a record if and only if it was
 * answered. So a failed call was never admitted, and nobody paid for a response that did not arrive.
 */
async function expectAllAdmittedAnswered(keys: readonly (readonly Key[])[], load: Load): Promise<void> {
  await stack.settled();
  const accounts = keys.flat().map(({ account_id }) => account_id);
  const { sql } = stack.stores;
  const bills = await sql<Bill[]>`
    SELECT usage_id, outcome, amount::int FROM calls WHERE account_id = ANY(${accounts}::uuid[])`;
  const answered = new Set(load.answered);
  const recorded = new Set(bills.map(({ usage_id }) => usage_id));
  expect({
    failedInTheMiddle: load.failures.filter(({ phase }) => !BEFORE_ADMISSION.includes(phase)),
    recordedAndNotAnswered: bills.filter(({ usage_id }) => !answered.has(usage_id)),
    recordedAndNotCharged: bills.filter(({ amount, outcome }) => outcome !== 'completed' || amount !== PRICE_MICROS),
    answeredAndNotRecorded: load.answered.filter((id) => !recorded.has(id)),
    calls: bills.length,
  }).toEqual({
    failedInTheMiddle: [],
    recordedAndNotAnswered: [],
    recordedAndNotCharged: [],
    answeredAndNotRecorded: [],
    calls: load.answered.length,
  });
  const [wallets] = await sql<{ left: number }[]>`
    SELECT sum(balance)::float8 AS "left" FROM balances WHERE ledger = 'wallet' AND account_id = ANY(${accounts}::uuid[])`;
  expect(wallets?.left).toBe(accounts.length * FULL_LOAD.balanceMicros - bills.length * PRICE_MICROS);
  expect(await stack.books()).toMatchObject({ drifting: [], total: '0', negative: 0 });
}

/** Expects that no hold is open, and that no settled call waits for Postgres. */
async function expectNothingLeft(): Promise<void> {
  const { redis, keys } = stack.stores;
  const lengths = await Promise.all(keys.usage.map((stream) => redis.command('xlen', [stream])));
  const holds = await Promise.all(keys.open.map((open) => redis.command('hvals', [open]) as Promise<string[]>));
  // A tombstone is no hold.
  const open = holds.flat().filter((hold) => !hold.startsWith('x'));
  expect({ lengths, open }).toEqual({ lengths: keys.usage.map(() => 0), open: [] });
}

/**
 * Keeps the load full while processes drain and take over, and light from the end of one process until the next is about to listen:
 * nothing else happens meanwhile, and a full load would only make that last longer.
 *
 * @returns a function that ends this; the load is full again
 */
function fullAtHandOvers(load: Load): () => void {
  const { supervisor } = stack;
  const before = supervisor.log.length;
  const timer = setInterval(() => {
    const steps = supervisor.log.slice(before).map(({ msg }) => msg);
    // A gateway logs the second line first of all, long before it listens.
    const last = steps.findLast((msg) => msg === 'stopped' || msg === 'uWebSockets.js loaded');
    load.pauseMs = last === 'stopped' ? LIGHT_PAUSE_MS : 0;
  }, 20);
  return () => {
    clearInterval(timer);
    load.pauseMs = 0;
  };
}

async function waitingCall(key: Key): Promise<RawCaller> {
  const caller = await RawCaller.connect(stack.baseUrl);
  caller.send(requestText(`GET ${path}/wait`, { key }));
  return caller;
}

/** Calls a tool of an MCP server, which waits as `/wait` does. */
async function waitingTool(key: Key): Promise<RawCaller> {
  const caller = await RawCaller.connect(stack.baseUrl);
  const body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}';
  const headers = ['Content-Type: application/json', 'Accept: application/json, text/event-stream'];
  caller.send(requestText(`POST ${tools}/wait`, { key, headers, body }));
  return caller;
}

/**
 * Stops everything at full load, with one more call open until nobody listens. Expects that no call is cut, that no unanswered
 * call is charged, and that no work is left in the stores. Each caller stops after its first failed call.
 *
 * @param wholeGroup whether the signal reaches all processes, not only the supervisor
 * @returns the record of the open call, and all log lines since the signal
 */
async function stopAtFullLoad(
  signal: NodeJS.Signals,
  wholeGroup: boolean,
): Promise<{ readonly open: readonly Bill[]; readonly log: readonly LogLine[] }> {
  const { supervisor } = stack;
  const [key, keys] = [await stack.buyer(10), await keysForFullLoad(stack.stores.sql, FULL_LOAD)];
  const load = new Load(anyShape, keys, { endsAtFailure: true });
  const caller = await waitingCall(key);
  await until(() => waiting.length === 1 && load.answered.length > 10 * CALLERS);
  const before = supervisor.log.length;
  supervisor.signal(signal, wholeGroup);
  await until(() => isPortFree(Number(stack.env.PORT), '127.0.0.1'));
  waiting[0]?.end('ok');
  expect((await caller.response()).status).toBe(200);
  expect((await supervisor.child.exited).code).toBe(0);
  supervisor.child.forget();
  await load.stop();
  const log = supervisor.log.slice(before);
  const drained = log.filter(({ msg }) => msg === 'gateway drained');
  expect(drained.map(({ callsCut, unsettled }) => [callsCut, unsettled])).toEqual(Array(2).fill([0, 0]));
  // No process runs any more that could store events that were left.
  await expectNothingLeft();
  await expectAllAdmittedAnswered(keys, load);
  return { open: await billsOf(key), log };
}

describe('a supervisor', () => {
  it('refuses a port that is in use, even by workers of another supervisor, which keep serving', async () => {
    const env = { ...stack.env, METRICS_PORT: String(await freePort()) };
    const other = new SupervisorProcess(build, env);
    expect((await other.child.exited).code).toBe(1);
    other.child.forget();
    expect(other.output).toContain(`cannot listen on 127.0.0.1:${stack.env.PORT}: the port is taken`);
    expect(other.pidsOf('writer')).toEqual([]);
    expect((await stack.request('/readyz')).status).toBe(200);
  });

  it('ends when nothing can be started, and logs why', async () => {
    const [port, metricsPort] = [String(await freePort()), String(await freePort())];
    // A port below 1024, which no test takes.
    const env = { ...stack.env, PORT: port, METRICS_PORT: metricsPort, REDIS_URL: 'redis://127.0.0.1:1' };
    const other = new SupervisorProcess(build, env);
    expect((await other.child.exited).code).toBe(1);
    other.child.forget();
    expect(other.output).toContain('process writer could not be started: it ended before it was ready: exit code 1');
    expect(other.output).toContain('ECONNREFUSED');
  });

  it('replaces every process after SIGHUP at full load without a failed call', async () => {
    const keys = await keysForFullLoad(stack.stores.sql, FULL_LOAD);
    const before = pids();
    const load = new Load(fast, keys);
    await until(() => load.answered.length > 10 * CALLERS);
    const endLight = fullAtHandOvers(load);
    stack.supervisor.signal('SIGHUP');
    await until(() => stack.supervisor.log.some(({ msg }) => msg === 'replaced all processes'));
    endLight();
    const answered = load.answered.length;
    await until(() => load.answered.length > answered + 10 * CALLERS);
    await load.stop();
    expect(load.failures).toEqual([]);
    const after = pids();
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
    expect([before.filter(isAlive), after.filter(isAlive)]).toEqual([[], after]);
    await expectAllAdmittedAnswered(keys, load);
  });

  it('restarts a worker killed under load; the other worker serves, and open calls of the killed one are refunded', {
    timeout: 180_000,
  }, async () => {
    const [keys, slow] = [await keysOfOne(), await stack.buyer(10)];
    const load = new Load(
      stack.baseUrl + path,
      keys.map((key) => [key]),
    );
    const callers = await Promise.all(
      Array.from({ length: 32 }, (_, index) => (index % 2 === 0 ? waitingCall(slow) : waitingTool(slow))),
    );
    await until(() => waiting.length === 32);
    const [, first, second] = pids();
    process.kill(first as number, 'SIGKILL');
    await until(() => callers.some(({ gone }) => gone));
    const answered = load.answered.length;
    await until(() => load.answered.length > answered + CALLERS);
    await until(() => stack.supervisor.pidOf('1') !== first);
    expect([stack.supervisor.pidOf('2'), isAlive(second as number)]).toEqual([second, true]);
    await load.stop();
    // Each caller loses at most the call that was under way. No caller finds the port closed.
    expect(load.failures.length).toBeLessThanOrEqual(CALLERS);
    expect(load.failures.filter(({ reason }) => reason.includes('ECONNREFUSED'))).toEqual([]);

    const left = callers.filter(({ gone }) => !gone);
    for (const response of waiting) response.end('ok');
    const responses = await Promise.all(left.map((caller) => caller.response()));
    expect(responses.map(({ status }) => status)).toEqual(left.map(() => 200));
    await until(async () => (await stack.samples('tollgate_writer_swept_holds_total')).get('writer') !== 0, 60_000);
    await stack.settled();
    const outcomes = (await billsOf(slow)).map(({ outcome }) => outcome).sort();
    expect(left.length).toBeGreaterThan(0);
    expect(left.length).toBeLessThan(32);
    expect(outcomes).toEqual([...Array(32 - left.length).fill('abandoned'), ...left.map(() => 'completed')]);
    await expectRightBooks(slow, []);
    await expectRightBooks(keys[0] as Key, load.answered);
    expect((await stack.samples('tollgate_worker_restarts_total')).get('1')).toBe(1);
    for (const caller of callers) caller.destroy();
  });

  it('restarts a worker that gets a SIGTERM and drains at full load; no call is charged and lost', {
    timeout: 180_000,
  }, async () => {
    const [writer, first, second] = pids();
    const keys = await keysForFullLoad(stack.stores.sql, FULL_LOAD);
    const load = new Load(anyShape, keys);
    await until(() => load.answered.length > 10 * CALLERS);
    const before = stack.supervisor.log.length;
    const endLight = fullAtHandOvers(load);
    process.kill(first as number, 'SIGTERM');
    process.kill(writer as number, 'SIGTERM');
    await until(() => stack.supervisor.pidOf('1') !== first);
    endLight();
    await load.stop();
    const log = stack.supervisor.log.slice(before);
    const end = log.find(({ msg, pid }) => msg === 'process ended by itself' && pid === first);
    expect(end).toMatchObject({ process: '1', end: 'exit code 0' });
    expect(log.filter(({ msg }) => msg === 'gateway drained')).toMatchObject([
      { worker: 1, callsCut: 0, unsettled: 0 },
    ]);
    // The writer never ends before its workers.
    expect(pids()).toEqual([writer, stack.supervisor.pidOf('1'), second]);
    await expectAllAdmittedAnswered(keys, load);
  });

  it('drains the workers first and ends the writer last after a Ctrl-C that reaches all processes at once', {
    timeout: 180_000,
  }, async () => {
    const { open, log } = await stopAtFullLoad('SIGINT', true);
    const stopped = log.filter(({ msg }) => msg === 'stopped');
    expect(stopped.map(({ role }) => role)).toEqual(['gateway', 'gateway', 'writer', 'supervisor']);
    expect(open).toMatchObject([{ outcome: 'completed', amount: PRICE_MICROS }]);
  });

  it('drains after SIGTERM at full load: no call is cut, none is charged without its answer, and all are stored', {
    timeout: 180_000,
  }, async () => {
    await stack.startAgain();
    const { open } = await stopAtFullLoad('SIGTERM', false);
    expect(open).toMatchObject([{ outcome: 'completed', amount: PRICE_MICROS }]);
  });

  it('ends all processes at once after a second signal', async () => {
    await stack.startAgain();
    const caller = await waitingCall(await stack.buyer(10));
    await until(() => waiting.length === 1);
    const all = pids();
    stack.supervisor.signal('SIGTERM');
    await until(() => stack.supervisor.log.some(({ role, msg }) => role === 'supervisor' && msg === 'draining'));
    await until(() => {
      if (!stack.supervisor.child.hasExited()) stack.supervisor.signal('SIGTERM');
      return stack.supervisor.child.hasExited();
    });
    expect(await stack.supervisor.stop()).toBe(1);
    await until(() => !all.some(isAlive));
    caller.destroy();
  });

  it('leaves no process behind when it is killed, and no listener on the port', async () => {
    await stack.startAgain();
    const all = pids();
    expect(all.filter(isAlive)).toEqual(all);
    await stack.supervisor.stop('SIGKILL');
    await until(() => !all.some(isAlive));
    expect(await isPortFree(Number(stack.env.PORT), '127.0.0.1')).toBe(true);
  });
});
