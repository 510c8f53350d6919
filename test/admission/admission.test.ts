import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Admission, type StateLoader } from '../../src/admission/admission.ts';
import type { AdmitRequest, AdmitResult, TakeResult } from '../../src/admission/commands.ts';
import type { HoldOwner } from '../../src/admission/hold-owners.ts';
import { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { CANCELLED } from '../../src/ledger/usage-event.ts';
import { isCommandTimeout } from '../../src/platform/redis.ts';
import type { ScriptConnection } from '../../src/platform/script-connection.ts';
import { comeBackOlder, keepState } from '../ledger/reconcile/older-redis.ts';
import { batchesOf, type Limits, QUIET, Store } from '../support/store.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
import { timed } from '../support/timed.ts';
import { until } from '../support/wait.ts';
import { COMPLETED, listener, newScene, openScene, REFUNDED, request, type Scene } from './calls.ts';

/** Long: a stall of a busy machine is no lost reply. */
const PATIENT_MS = 10_000;
/** For tests that lose replies, once they have set up. */
const COMMAND_TIMEOUT_MS = 300;
/** Most tests have nothing to wait for. */
const DRAIN_MS = 60_000;

let store: Store;
let proxy: TcpProxy;
let batches: ScriptConnection;
let limits: Limits;
let admission: Admission;
let loads: string[];
let load: (accountId: string) => Promise<void>;

beforeEach(async () => {
  store = await Store.open();
  proxy = await TcpProxy.open(store.server.port);
  loads = [];
  load = () => Promise.resolve();
  await open(PATIENT_MS);
});
afterEach(async () => {
  await close();
  await proxy.close();
  await store.close();
});

async function open(commandTimeoutMs: number): Promise<void> {
  limits = { commandTimeoutMs };
  batches = batchesOf(proxy.through(store.server.url), limits);
  await batches.connect();
  admission = newAdmission();
  admission.start();
  // Redis has the script and the lease by now, so the next command that the proxy swallows is that of the test.
  const scene = await openScene(store, 0);
  await until(async () => (await take(scene)).outcome === 'taken');
}

async function close(): Promise<void> {
  await admission.drain(0);
  await batches.close();
}

/** From now on a reply that does not come is lost soon, in at most an eighth of the former limit more. */
function becomeImpatient(): void {
  limits.commandTimeoutMs = COMMAND_TIMEOUT_MS;
}

/** Opens a connection on which a reply is lost within its limit. On a busy machine Redis may not answer in time: then again. */
async function openImpatient(): Promise<void> {
  await until(async () => {
    await close();
    const failure = await open(COMMAND_TIMEOUT_MS).catch((error: unknown) => error);
    if (failure !== undefined && !isCommandTimeout(failure)) throw failure;
    return failure === undefined;
  });
}

function newAdmission(): Admission {
  const loader: StateLoader = {
    loadKey: async (keyId, accountId) => {
      loads.push(`key ${keyId}`);
      await load(accountId);
      await store.loadKey(keyId, accountId);
    },
    loadWallet: async (accountId) => {
      loads.push(`wallet ${accountId}`);
      await load(accountId);
      await store.loadWallet(accountId, 5_000);
    },
  };
  return new Admission({
    batches,
    keys: store.keys,
    instance: 'gateway-1',
    loader,
    cancelSettlement: CANCELLED,
    log: QUIET,
  });
}

const admit = (call: AdmitRequest) => new Promise<AdmitResult>((resolve) => admission.admit(call, listener(resolve)));
async function admitted(call: AdmitRequest): Promise<HoldOwner> {
  const result = await admit(call);
  if (result.outcome !== 'admitted') throw new Error(result.outcome);
  return result.owner;
}
const settle = ({ usageId, buyer }: AdmitRequest, owner: HoldOwner, refund: boolean): void =>
  admission.settle(usageId, buyer, refund, refund ? REFUNDED : COMPLETED, owner);
const take = ({ keyId, accountId }: Scene) =>
  new Promise<TakeResult>((resolve) => admission.takeForKey({ keyId, accountId, ancestors: [] }, resolve));

/** Repairs the network. The swallowed bytes cannot come back, so the connection breaks, as it would with TCP. */
function restore(): void {
  proxy.cut();
  proxy.set('pass');
}

/** Nothing is charged and nothing is held: the balance is what it was, and only tombstones may lie in `open`. */
async function nothingHappened(scene: Scene, balance: number): Promise<void> {
  expect(await admission.drain(DRAIN_MS)).toBe(0);
  expect(await store.balance(scene.accountId)).toBe(balance);
  const holds = Object.values(await store.open(scene.accountId));
  expect(holds.filter((hold) => !hold.startsWith('x'))).toEqual([]);
  for (const event of await store.events(scene.accountId)) expect(event.settlement).toBe(CANCELLED);
}

describe('draining', () => {
  it.each(['is on its way', 'waits for Postgres'])(
    'waits for an admission that %s, because its caller may be gone and its call must still be settled',
    async (what) => {
      const scene = what === 'waits for Postgres' ? newScene() : await openScene(store, 5_000);
      const call = request(scene, 2_000);
      const loading: (() => void)[] = [];
      load = () => new Promise((resolve) => loading.push(resolve));
      // An exchange whose caller was cut off does the same.
      const settleAtOnce = (result: AdmitResult): void => {
        if (result.outcome === 'admitted') settle(call, result.owner, true);
      };
      admission.admit(call, listener(settleAtOnce));
      if (what === 'waits for Postgres') await until(() => loads.length > 0);
      let isDrained = false;
      const drained = admission.drain(DRAIN_MS).finally(() => {
        isDrained = true;
      });
      await new Promise(setImmediate);
      expect(isDrained).toBe(false);
      load = () => Promise.resolve();
      for (const loaded of loading) loaded();
      expect(await drained).toBe(0);
      expect(await store.open(scene.accountId)).toEqual({});
      expect(await store.balance(scene.accountId)).toBe(5_000);
      expect((await store.events(scene.accountId)).map(({ usageId }) => usageId)).toEqual([call.usageId]);
    },
  );
});

describe('when the reply to an admission is lost', () => {
  beforeEach(becomeImpatient);

  it('because Redis hangs, the caller gets 503 within the command timeout, and in the end nothing is charged', async () => {
    await openImpatient();
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    store.server.pause();
    const tookMs = await timed(async () => expect((await admit(call)).outcome).toBe('unavailable'));
    expect(tookMs).toBeLessThan(COMMAND_TIMEOUT_MS + 700);
    store.server.resume();
    // Redis carries out the admission now, or it finds the tombstone: either way the cancellation wins.
    expect(await admission.drain(DRAIN_MS)).toBe(0);
    const holds = await store.open(scene.accountId);
    expect(holds[call.usageId] ?? 'x').toMatch(/^x/);
    expect(await store.balance(scene.accountId)).toBe(5_000);
  });

  it('after Redis has made the charge, the charge is cancelled by its id', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    proxy.set('swallow replies');
    const result = admit(call);
    await until(() => proxy.swallowed > 0);
    expect(await store.balance(scene.accountId)).toBe(3_000);
    expect((await result).outcome).toBe('unavailable');
    restore();
    await nothingHappened(scene, 5_000);
    expect((await store.events(scene.accountId)).map(({ usageId }) => usageId)).toEqual([call.usageId]);
  });

  it('because the command was late, a tombstone rejects the late admission, and is removed after a minute', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    proxy.set('swallow requests');
    expect((await admit(call)).outcome).toBe('unavailable');
    restore();
    await nothingHappened(scene, 5_000);
    const open = await store.open(scene.accountId);
    const [, , at] = (open[call.usageId] as string).split('\t');
    const shard = store.keys.shardOf(scene.accountId);
    const old = `x\t\t${Number(at) - 61_000}\tgateway-1`;
    await store.command('hset', store.keys.open[shard] as string, call.usageId, old);
    await new Sweeper({
      redis: store.redis,
      keys: store.keys,
      leaseSeconds: 15,
      isReconciled: () => true,
      log: QUIET,
    }).sweepOnce();
    expect(await store.open(scene.accountId)).toEqual({});
    expect(await store.events(scene.accountId)).toEqual([]);
  });

  it('because the connection broke, the cancellation waits until Redis is back', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    proxy.set('swallow replies');
    const result = admit(call);
    await until(async () => (await store.balance(scene.accountId)) === 3_000);
    proxy.refuse();
    expect((await result).outcome).toBe('unavailable');
    await until(() => !batches.ready);
    // Redis is known to be away: both are refused within a turn of the loop, so neither has waited for a timeout.
    const outcomes: string[] = [];
    admission.admit(
      request(scene, 1),
      listener(({ outcome }) => outcomes.push(outcome)),
    );
    void take(scene).then(({ outcome }) => outcomes.push(outcome));
    await new Promise(setImmediate);
    expect(outcomes).toEqual(['unavailable', 'unavailable']);
    expect(admission.unsettled).toBe(1);
    proxy.set('pass');
    await nothingHappened(scene, 5_000);
  });
});

/** Number of scripts that Redis has run. */
async function trips(): Promise<number> {
  const stats = String(await store.redis.command('info', ['commandstats']));
  return Number(/^cmdstat_evalsha:calls=(\d+)/m.exec(stats)?.[1] ?? 0);
}

describe('a settlement', () => {
  it('shares a trip with the next admission while calls are few, and is sent alone if no admission follows', async () => {
    const scene = await openScene(store, 5_000);
    const before = await trips();
    const calls = 20;
    for (let i = 0; i < calls; i++) {
      const call = request(scene, 100);
      const owner = await admitted(call);
      settle(call, owner, false);
      // Waits one turn of the loop: a caller's next request cannot come earlier.
      await new Promise(setImmediate);
    }
    await until(() => admission.unsettled === 0);
    expect(await store.events(scene.accountId)).toHaveLength(calls);
    // One trip per call and one for the last settlement; the rest allows for a slow test machine.
    expect((await trips()) - before).toBeLessThan(calls * 1.5);
  });

  it('is sent again until Redis has confirmed it, and counts once', async () => {
    const scene = await openScene(store, 5_000);
    const [charged, refunded] = [request(scene, 2_000), request(scene, 1_000)];
    const owners = [await admitted(charged), await admitted(refunded)] as const;
    becomeImpatient();
    proxy.set('swallow replies');
    settle(charged, owners[0], false);
    settle(refunded, owners[1], true);
    await until(async () => (await store.events(scene.accountId)).length === 2);
    expect(admission.unsettled).toBe(2);
    restore();
    expect(await admission.drain(DRAIN_MS)).toBe(0);
    expect(await store.balance(scene.accountId)).toBe(3_000);
    expect((await store.events(scene.accountId)).map(({ settlement }) => settlement)).toEqual([COMPLETED, REFUNDED]);
  });

  it('of a call that ended while Redis was away is sent with the first trip once Redis is back', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    const owner = await admitted(call);
    // No trip is under way when the connection breaks. So none is lost, and no answer to one can show that Redis is back.
    proxy.refuse();
    await until(() => !batches.ready);
    settle(call, owner, false);
    // Long enough that the pauses between the retries of the settlement have grown.
    await until(() => proxy.refused >= 9);
    proxy.set('pass');
    await until(() => batches.ready);
    await take(scene);
    expect(admission.unsettled).toBe(0);
    expect(await store.events(scene.accountId)).toHaveLength(1);
  });

  it('that cannot be confirmed is reported by drain in bounded time', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    const owner = await admitted(call);
    proxy.refuse();
    settle(call, owner, false);
    expect(await admission.drain(50)).toBe(1);
  });
});

describe('a Redis that comes back with older data than the gateway has seen', () => {
  /** The instances whose leases are renewed from now on. */
  async function renewed(scene: Scene): Promise<string[]> {
    const name = store.keys.lease[store.keys.shardOf(scene.accountId)] as string;
    const renewals = async () => Object.entries(await store.hash(name)).filter(([, at]) => at !== '0');
    for (const [instance] of await renewals()) await store.command('hset', name, instance, 0);
    await until(async () => (await renewals()).length > 0);
    return (await renewals()).map(([instance]) => instance).sort();
  }
  const sweep = () =>
    new Sweeper({
      redis: store.redis,
      keys: store.keys,
      leaseSeconds: 15,
      isReconciled: () => true,
      log: QUIET,
    }).sweepOnce();
  async function comeBack(): Promise<void> {
    await comeBackOlder({ store });
    await until(() => batches.ready);
  }

  it('keeps the hold of an ended call only while other calls of that connection are open', async () => {
    const scene = await openScene(store, 10_000);
    const [ended, streaming, later] = [request(scene, 700), request(scene, 40), request(scene, 2)];
    const [endedOwner, streamingOwner] = [await admitted(ended), await admitted(streaming)];
    await keepState({ store });
    settle(ended, endedOwner, false);
    await until(() => admission.unsettled === 0);
    await comeBack();
    await admitted(later);
    expect(await store.balance(scene.accountId)).toBe(10_000 - 742);

    // Another call of the former connection goes on: its hold looks just like the one that came back.
    expect(await renewed(scene)).toEqual(['gateway-1', 'gateway-1.2']);
    expect(await sweep()).toBe(0);
    settle(streaming, streamingOwner, false);
    await until(() => admission.unsettled === 0);
    expect(await renewed(scene)).toEqual(['gateway-1.2']);
    expect(await sweep()).toBe(1);
    expect(await store.balance(scene.accountId)).toBe(10_000 - 42);
    expect(Object.keys(await store.open(scene.accountId))).toEqual([later.usageId]);
  });

  it('does not keep the hold of a call whose cancellation it has forgotten, after one restart or after two', async () => {
    becomeImpatient();
    const scene = await openScene(store, 10_000);
    const [cancelled, ended] = [request(scene, 700), request(scene, 40)];
    proxy.set('swallow replies');
    const lost = admit(cancelled);
    await until(async () => (await store.balance(scene.accountId)) === 9_300);
    await keepState({ store });
    expect((await lost).outcome).toBe('unavailable');
    limits.commandTimeoutMs = PATIENT_MS;
    restore();
    await until(() => admission.unsettled === 0);
    await comeBack();
    const owner = await admitted(ended);
    await keepState({ store });
    settle(ended, owner, false);
    await until(() => admission.unsettled === 0);
    await comeBack();
    expect(await store.balance(scene.accountId)).toBe(9_260);
    expect(await renewed(scene)).toEqual(['gateway-1.4']);
    expect(await sweep()).toBe(2);
    expect(await store.balance(scene.accountId)).toBe(10_000);
  });
});

describe('state that Redis does not have', () => {
  it('is loaded (key and wallet together), and the call is admitted', async () => {
    const scene = newScene();
    const loading: (() => void)[] = [];
    load = () => new Promise((resolve) => loading.push(resolve));
    const admitted = admit(request(scene, 2_000));
    await until(() => loading.length === 2);
    for (const loaded of loading) loaded();
    expect(await admitted).toMatchObject({ outcome: 'admitted', balanceMicros: 3_000 });
    expect(loads).toEqual([`key ${scene.keyId}`, `wallet ${scene.accountId}`]);
  });

  it('is loaded again after Redis lost everything, scripts included', async () => {
    const scene = await openScene(store, 5_000);
    await admit(request(scene, 2_000));
    await store.command('flushall');
    await store.command('script', 'FLUSH');
    expect(await admit(request(scene, 2_000))).toMatchObject({ outcome: 'admitted', balanceMicros: 3_000 });
  });

  it('makes the call fail as unavailable if Postgres is away too, and the call is not admitted later', async () => {
    load = () => Promise.reject(new Error('postgres is away'));
    const scene = newScene();
    expect(await admit(request(scene, 2_000))).toEqual({ outcome: 'unavailable' });
    expect(await take(scene)).toEqual({ outcome: 'unavailable' });
    expect(await store.open(scene.accountId)).toEqual({});
  });

  it('makes the call fail as unavailable after a few attempts if loading does not help', async () => {
    const scene = newScene();
    const lossy = new Admission({
      batches,
      keys: store.keys,
      instance: 'gateway-2',
      loader: { loadKey: (keyId, id) => store.loadKey(keyId, id), loadWallet: () => Promise.resolve() },
      cancelSettlement: CANCELLED,
      log: QUIET,
    });
    const result = await new Promise<AdmitResult>((resolve) => lossy.admit(request(scene, 1), listener(resolve)));
    expect(result).toEqual({ outcome: 'unavailable' });
    await lossy.drain(0);
  });
});

it('all commands of a turn are carried out when they do not fit into one trip', async () => {
  const scene = await openScene(store, 1_000_000, 300);
  const results = await Promise.all(Array.from({ length: 290 }, () => admit(request(scene, 1_000))));
  expect(results.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(290);
  expect(await store.balance(scene.accountId)).toBe(1_000_000 - 290_000);
  expect(Object.keys(await store.open(scene.accountId))).toHaveLength(290);
});

it('a gateway renews its lease in every shard with its first trip', async () => {
  const scene = await openScene(store, 5_000);
  await take(scene);
  for (const lease of store.keys.lease) expect(Object.keys(await store.hash(lease))).toEqual(['gateway-1']);
  // The renewal leaves a tombstone of no call, so that the hash of open holds is not made anew for each call.
  for (const open of store.keys.open) {
    expect(await store.hash(open)).toEqual({ kept: expect.stringMatching(/^x\t\t\d{13}\tgateway-1$/) });
  }
});

describe('more commands than a turn can send', () => {
  it('wait for a trip: 16 000 callers with two commands each are not refused; calls beyond 32 768 commands are', async () => {
    const many = new Admission({
      batches: store.batches,
      keys: store.keys,
      instance: 'gateway-2',
      cancelSettlement: CANCELLED,
      log: QUIET,
      loader: { loadKey: () => Promise.resolve(), loadWallet: () => Promise.resolve() },
    });
    const outcomes = new Map<string, number>();
    // Two requests a minute: none is refilled while a busy machine carries them out.
    // All of this happens in one turn of the loop, and nothing is sent before the turn ends.
    for (let i = 0; i < 32_768 + 10; i++) {
      many.takeForAddress('192.0.2.1', 2, ({ outcome }) => outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1));
    }
    expect(outcomes).toEqual(new Map([['unavailable', 10]]));
    expect(await many.drain(DRAIN_MS)).toBe(0);
    expect(outcomes).toEqual(
      new Map([
        ['taken', 2],
        ['rate_limited', 32_766],
        ['unavailable', 10],
      ]),
    );
  });
});

it('all commands of a turn are carried out even if they need more trips than may be under way at once', async () => {
  const send = batches.send.bind(batches);
  let [underWay, most] = [0, 0];
  batches.send = (trip, { onReply, onLost }) => {
    most = Math.max(most, ++underWay);
    const counted = <Args extends unknown[]>(then: (...args: Args) => void) => {
      return (...args: Args): void => {
        underWay--;
        then(...args);
      };
    };
    send(trip, { onReply: counted(onReply), onLost: counted(onLost) });
  };
  const scenes = await Promise.all(Array.from({ length: 20 }, () => openScene(store, 1_000_000, 300)));
  const calls = scenes.flatMap((scene) => Array.from({ length: 250 }, () => request(scene, 1_000)));
  // The new gateway renews its lease in the first of these trips.
  await admission.drain(0);
  admission = newAdmission();
  const results = await Promise.all(calls.map(admit));
  expect(results.filter(({ outcome }) => outcome === 'admitted')).toHaveLength(5_000);
  expect(most).toBe(16);
});
