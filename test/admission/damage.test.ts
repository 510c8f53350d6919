import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { Admission } from '../../src/admission/admission.ts';
import type { AdmitRequest, AdmitResult } from '../../src/admission/commands.ts';
import type { HoldOwner } from '../../src/admission/hold-owners.ts';
import { DamageLog } from '../../src/ledger/damage-log.ts';
import { CANCELLED } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import type { ScriptConnection, TripListener } from '../../src/platform/script-connection.ts';
import type { TripEncoder } from '../../src/platform/trip-encoder.ts';
import { Store } from '../support/store.ts';
import { until } from '../support/wait.ts';
import { admit, COMPLETED, listener, openScene, REFUNDED, request, requestByUse, type Scene } from './calls.ts';
import type { End } from './model.ts';

let store: Store;
let admission: Admission;
let lines: string[];
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(async () => {
  await store.command('flushall');
  lines = [];
  admission = newAdmission();
});
afterEach(() => admission.drain(0));

function newAdmission(batches: ScriptConnection = store.batches): Admission {
  return new Admission({
    batches,
    keys: store.keys,
    instance: 'gateway-1',
    loader: { loadKey: (keyId, id) => store.loadKey(keyId, id), loadWallet: (id) => store.loadWallet(id, 5_000) },
    cancelSettlement: CANCELLED,
    log: { warn: (fields, message) => void lines.push(`${message} ${JSON.stringify(fields)}`) },
  });
}

const ask = (call: AdmitRequest, of = admission): Promise<AdmitResult> =>
  new Promise((resolve) => of.admit(call, listener(resolve)));
async function ownerOf(call: AdmitRequest): Promise<HoldOwner> {
  const result = await ask(call);
  if (result.outcome !== 'admitted') throw new Error(result.outcome);
  return result.owner;
}
/** Settles a call. The owner of its hold comes from a call of another account, which stays open. */
async function settle(call: AdmitRequest, how: End): Promise<void> {
  end(call, how, await ownerOf(request(await openScene(store, 0), 0)));
}
function end({ usageId, buyer }: AdmitRequest, how: End, owner: HoldOwner): void {
  const refund = how === 'refunded';
  const captured = typeof how === 'number' ? how : null;
  admission.settle(usageId, buyer, refund, refund ? REFUNDED : COMPLETED, owner, captured);
}
const openKey = (scene: Scene): string => store.keys.open[store.keys.shardOf(scene.accountId)] as string;
const usageKey = (scene: Scene): string => store.keys.usage[store.keys.shardOf(scene.accountId)] as string;
const bucketKey = ({ accountId, keyId }: Scene): string => store.keys.key(store.keys.shardOf(accountId), keyId);

const NO_BALANCES = ['1.5', 'abc', 'nan', 'inf', '-inf', '1e5', '0x10', '007', ' 5', '-0', '', '9007199254750000'];

describe('a wallet whose balance is not a number', () => {
  it.each(NO_BALANCES)(
    '(%j) refuses paid, free and gratis calls, takes their tokens and changes nothing else',
    async (balance) => {
      const scene = await openScene(store, 0);
      const other = await openScene(store, 5_000);
      const wallet = store.walletName(scene.accountId);
      await store.command('hset', wallet, 'balance', balance);
      const before = await store.hash(wallet);
      const asked = [
        request(other, 10),
        request(scene, 1_000),
        request(scene, 1_000, 5),
        request(scene, 0),
        requestByUse(scene, { price: 0, max: 1_000, freeCalls: 5 }),
        requestByUse(scene, { price: 0, max: 1_000 }),
        request(other, 20),
      ];
      const results = await Promise.all(asked.map((call) => ask(call)));
      const outcomes = ['admitted', ...Array(5).fill('damaged'), 'admitted'];
      expect(results.map(({ outcome }) => outcome)).toEqual(outcomes);
      expect(results[5]).toMatchObject({ rate: { limit: 300, remaining: 295 } });
      expect(await store.hash(wallet)).toEqual(before);
      expect(
        Object.keys({ ...(await store.open(scene.accountId)), ...(await store.open(other.accountId)) }).sort(),
      ).toEqual([asked[0], asked[6]].map((call) => call?.usageId).sort());
      expect(await store.balance(other.accountId)).toBe(4_970);
    },
  );

  it.each([...NO_BALANCES, '9223372036854775807', '99999999999999999999', '100000000000000000000'])(
    '(%j) does not pay for a call that must be free',
    async (balance) => {
      const scene = await openScene(store, 0);
      const wallet = store.walletName(scene.accountId);
      await store.command('hset', wallet, 'balance', balance, freeField(scene.serviceId), '1');
      const before = await store.hash(wallet);
      const call = request(scene, 1_000, 1);
      const { outcome } = await ask({ ...call, terms: call.terms.freeOnly() });
      expect(['damaged', 'insufficient_balance']).toContain(outcome);
      expect(await store.hash(wallet)).toEqual(before);
      expect(await store.open(scene.accountId)).toEqual({});
    },
  );

  it('is logged once, whatever commands meet it, and counted each time', async () => {
    const scene = await openScene(store, 0);
    await store.command('set', store.walletName(scene.accountId), 'x');
    for (let i = 0; i < 5; i++) expect((await ask(request(scene, 1))).outcome).toBe('damaged');
    expect(lines).toEqual([expect.stringContaining(scene.accountId)]);
    expect(admission.damage.get('wallet')).toBe(5);
  });

  it.each<[string, End, string]>([
    ['refunded', 'refunded', REFUNDED],
    ['captured', 300, `${COMPLETED}\tcaptured=300`],
  ])('is left alone when a call is %s, whose hold still ends with one event', async (_, how, settlement) => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 1_000);
    await ask(call);
    await store.command('hset', store.walletName(scene.accountId), 'balance', '1.5');
    await settle(call, how);
    expect(await admission.drain(5_000)).toBe(0);
    expect(await store.open(scene.accountId)).not.toHaveProperty(call.usageId);
    expect(await store.events(scene.accountId)).toMatchObject([{ usageId: call.usageId, settlement }]);
    expect((await store.hash(store.walletName(scene.accountId))).balance).toBe('1.5');
    expect(lines).toHaveLength(1);
  });
});

describe('free calls used', () => {
  it.each(['nan', 'inf', '1e99', '0x7', '5.5', '9007199254740993', ' 9', 'abc', ''])(
    '(%j) that are not a number make calls of that service fail without a charge, but not calls of other services',
    async (used) => {
      const scene = await openScene(store, 5_000);
      const call = request(scene, 1_000, 5);
      const wallet = store.walletName(scene.accountId);
      await store.command('hset', wallet, freeField(scene.serviceId), used);
      const before = await store.hash(wallet);
      expect((await ask(call)).outcome).toBe('damaged');
      expect(await store.hash(wallet)).toEqual(before);
      const another = request({ ...scene, serviceId: uuidv7() }, 1_000, 5);
      expect(await ask(another)).toMatchObject({ outcome: 'admitted', freeTier: true });
    },
  );

  it.each([5, 6, 40])('of %i, with a quota of five, make the call a paid one', async (used) => {
    const scene = await openScene(store, 5_000);
    await store.command('hset', store.walletName(scene.accountId), freeField(scene.serviceId), used);
    expect(await ask(request(scene, 1_000, 5))).toMatchObject({ outcome: 'admitted', balanceMicros: 4_000 });
  });
});

describe('a balance below the price', () => {
  it.each(['0', '999', '-1', '-5000000', '-9007199254000000'])(
    '(%s) is reported to the caller, and nothing is written to the wallet',
    async (balance) => {
      const scene = await openScene(store, 0);
      const wallet = store.walletName(scene.accountId);
      await store.command('hset', wallet, 'balance', balance);
      await store.command('config', 'resetstat');
      expect(await ask(request(scene, 1_000))).toMatchObject({
        outcome: 'insufficient_balance',
        balanceMicros: Number(balance),
        rate: { remaining: 299 },
      });
      expect(await store.hash(wallet)).toEqual({ balance, credit_seq: '1' });
      const written =
        /cmdstat_hincrby:calls=(\d+)/.exec(String(await store.command('info', 'commandstats')))?.[1] ?? '0';
      // The price is taken from a negative balance of many digits, and then put back.
      expect(Number(written)).toBe(balance.length > 4 ? 2 : 0);
    },
  );
});

describe('a damaged key or bucket', () => {
  it.each(['1.5', 'abc', '1e2', '007', '-3', '0', ''])(
    'with the limit %j is loaded again, and the call is admitted',
    async (limit) => {
      const scene = await openScene(store, 5_000);
      await store.command('hset', bucketKey(scene), 'limit', limit);
      expect(await ask(request(scene, 10))).toMatchObject({ outcome: 'admitted', rate: { limit: 300 } });
    },
  );

  it('of another type, or with an invalid status, is loaded again too', async () => {
    const scene = await openScene(store, 5_000);
    await store.command('set', bucketKey(scene), 'x');
    expect(await ask(request(scene, 10))).toMatchObject({ outcome: 'admitted', rate: { limit: 300 } });
    await store.command('hset', bucketKey(scene), 'status', '1');
    expect(await ask(request(scene, 10))).toMatchObject({ outcome: 'admitted', rate: { limit: 300 } });
  });

  it('with a status that this version does not know gets 503, is logged once, and is neither changed nor loaded again', async () => {
    const [scene, other] = [await openScene(store, 5_000), await openScene(store, 5_000)];
    await store.command('hset', bucketKey(scene), 'status', 'paused');
    const before = await store.hash(bucketKey(scene));
    const token = new Promise((resolve) => admission.takeForKey(scene, resolve));
    const calls = [request(other, 10), request(scene, 10), request(scene, 0), request(other, 10)];
    const results = await Promise.all(calls.map((call) => ask(call)));
    expect(results.map(({ outcome }) => outcome)).toEqual(['admitted', 'unavailable', 'unavailable', 'admitted']);
    expect(await token).toEqual({ outcome: 'unavailable' });
    expect(await store.hash(bucketKey(scene))).toEqual(before);
    expect(await store.open(scene.accountId)).not.toHaveProperty((calls[1] as AdmitRequest).usageId);
    expect(await store.balance(scene.accountId)).toBe(5_000);
    expect(lines).toEqual([expect.stringContaining(scene.keyId)]);
    expect(admission.damage.get('key')).toBe(3);
    await store.command('hset', bucketKey(scene), 'status', 'active');
    expect((await ask(request(scene, 10))).outcome).toBe('admitted');
  });

  it.each(['nan', 'inf', '-inf', 'abc', '1e99', '-1e99'])(
    'with %j as tokens or ts counts as full, and is written anew',
    async (value) => {
      const scene = await openScene(store, 5_000);
      for (const field of ['tokens', 'ts']) {
        await store.command('hset', bucketKey(scene), 'tokens', 120_000, 'ts', await store.now());
        await store.command('hset', bucketKey(scene), field, value);
        expect((await ask(request(scene, 10))).outcome).toBe('admitted');
        const { tokens, ts } = await store.hash(bucketKey(scene));
        expect(Number(tokens)).toBeGreaterThanOrEqual(60_000);
        expect(Number(tokens)).toBeLessThanOrEqual(299 * 60_000);
        expect(Math.abs(Number(ts) - (await store.now()))).toBeLessThan(5_000);
      }
    },
  );

  it.each(['reads', 'person', 'control'] as const)('of %s is made anew', async (bucket) => {
    const scene = await openScene(store, 0, 60);
    const shard = store.keys.shardOf(scene.accountId);
    await store.command('set', store.keys.reads(shard, scene.keyId), 'x');
    await store.command('set', store.keys.person(shard, scene.keyId), 'x');
    await store.command('set', store.keys.control(shard, scene.accountId), 'x');
    const result = await new Promise((resolve) => admission.takeForKey(scene, resolve, bucket));
    expect(result).toMatchObject({
      outcome: 'taken',
      rate: { remaining: { reads: 59, person: 119, control: 29 }[bucket] },
    });
  });

  it('of an address is made anew', async () => {
    await store.command('set', store.keys.ip('192.0.2.9'), 'x');
    const result = await new Promise((resolve) => admission.takeForAddress('192.0.2.9', 3, resolve));
    expect(result).toMatchObject({ outcome: 'taken', rate: { remaining: 2 } });
  });
});

describe('a bucket that was written before the clock was set back', () => {
  const HOUR = 3_600_000;

  it.each(['key', 'address'])('of a %s is refilled from now on', async (of) => {
    const scene = await openScene(store, 0, 60);
    const name = of === 'key' ? bucketKey(scene) : store.keys.ip('192.0.2.8');
    await store.command('hset', name, 'tokens', 59_000, 'ts', (await store.now()) + HOUR);
    const take = (): Promise<{ outcome: string }> =>
      new Promise((resolve) => {
        if (of === 'key') admission.takeForKey(scene, resolve);
        else admission.takeForAddress('192.0.2.8', 60, resolve);
      });
    expect((await take()).outcome).toBe('rate_limited');
    expect(Number((await store.hash(name)).ts)).toBeLessThanOrEqual(await store.now());
    // 1 000 units are missing, at 60 a millisecond.
    await until(async () => (await take()).outcome === 'taken');
  });
});

describe('the holds or the stream of a shard', () => {
  it('damaged before an admission: calls of that shard get 503 and cost nothing, and other calls of the turn are not affected', async () => {
    const scene = await openScene(store, 5_000);
    let other = await openScene(store, 5_000);
    while (openKey(other) === openKey(scene)) other = await openScene(store, 5_000);
    await store.command('set', openKey(scene), 'x');
    const results = await Promise.all([
      ...[request(scene, 10), request(scene, 10, 5), request(scene, 0)].map((call) => ask(call)),
      ask(request(other, 10)),
    ]);
    expect(results.map(({ outcome }) => outcome)).toEqual([...Array(3).fill('unavailable'), 'admitted']);
    expect(await store.hash(store.walletName(scene.accountId))).toEqual({ balance: '5000', credit_seq: '1' });
    expect(await store.balance(other.accountId)).toBe(4_990);
  });

  it.each<[End, number]>([
    ['charged', 4_000],
    ['refunded', 5_000],
    [300, 4_700],
  ])(
    'damaged before a settlement (%s): it is sent until the stream is repaired, and counts once',
    async (how, balance) => {
      const scene = await openScene(store, 5_000);
      const call = request(scene, 1_000);
      await ask(call);
      await store.command('set', usageKey(scene), 'x');
      await settle(call, how);
      await until(() => (admission.damage.get('shard') ?? 0) >= 2);
      expect(await store.open(scene.accountId)).toHaveProperty(call.usageId);
      expect(await store.balance(scene.accountId)).toBe(4_000);
      await store.command('del', usageKey(scene));
      expect(await admission.drain(10_000)).toBe(0);
      expect(await store.events(scene.accountId)).toHaveLength(1);
      expect(await store.balance(scene.accountId)).toBe(balance);
      expect(lines).toHaveLength(1);
    },
  );
});

describe('a shard that refuses a settlement', () => {
  /** Two accounts of different shards. */
  async function openTwo(): Promise<[Scene, Scene]> {
    const scene = await openScene(store, 5_000);
    for (;;) {
      const other = await openScene(store, 5_000);
      if (usageKey(other) !== usageKey(scene)) return [scene, other];
    }
  }

  it('admits no call and takes no money until it is repaired, while other shards go on', async () => {
    const [scene, other] = await openTwo();
    const [first, second] = [request(scene, 1_000), request(scene, 1_000)];
    const owners = [await ownerOf(first), await ownerOf(second)];
    await store.command('set', usageKey(scene), 'x');
    end(first, 'refunded', owners[0] as HoldOwner);
    end(second, 'refunded', owners[1] as HoldOwner);
    await until(() => (admission.damage.get('shard') ?? 0) >= 2);
    for (let i = 0; i < 3; i++) {
      expect((await ask(request(scene, 1_000))).outcome).toBe('unavailable');
      expect((await ask(request(other, 1_000))).outcome).toBe('admitted');
    }
    expect(await store.balance(scene.accountId)).toBe(3_000);
    expect(Object.keys(await store.open(scene.accountId)).sort()).toEqual([first.usageId, second.usageId].sort());
    await store.command('del', usageKey(scene));
    await until(() => admission.unsettled === 0);
    expect((await ask(request(scene, 1_000))).outcome).toBe('admitted');
    expect(await store.balance(scene.accountId)).toBe(4_000);
  });

  it('does not stop other shards, even with more settlements than may be unconfirmed', async () => {
    const [scene, other] = await openTwo();
    const owner = await ownerOf(request(other, 0));
    await store.command('set', openKey(scene), 'x');
    const call = request(scene, 1_000);
    for (let i = 0; i < 33_000; i++) end({ ...call, usageId: `call ${i}` }, 'charged', owner);
    await until(() => (admission.damage.get('shard') ?? 0) >= 33_000);
    const next = request(other, 1_000);
    end(next, 'charged', await ownerOf(next));
    await until(async () => (await store.events(other.accountId)).length === 1);
  });

  it('is sent one settlement at a time, whatever other shards do, and the rest once it is repaired', async () => {
    const [scene, other] = await openTwo();
    const owner = await ownerOf(request(other, 0));
    const refused = 300;
    for (const { accountId } of [scene, other]) {
      await store.command('set', store.keys.open[store.keys.shardOf(accountId)] as string, 'x');
    }
    for (const of of [scene, other]) {
      const call = request(of, 1_000);
      for (let i = 0; i < refused; i++) end({ ...call, usageId: `call ${i}` }, 'charged', owner);
    }
    await until(() => (admission.damage.get('shard') ?? 0) >= 2 * refused);
    await store.command('del', openKey(other));
    await until(() => admission.unsettled === refused);
    // Since then, each attempt at the damaged shard was one command.
    expect(admission.damage.get('shard')).toBeLessThan(2 * refused + 20);
    await store.command('del', openKey(scene));
    await until(() => admission.unsettled === 0);
  });
});

describe('a hold of an unknown format', () => {
  it.each([
    'v2\t1000\twhatever comes',
    'abc',
    '',
    '1',
    '5abc',
    'v1\tx',
    'v1\tgarbage',
    'v1\t5\t2\t1',
    'v1\t5\t0',
    `v1\t${'1'.repeat(17)}\t0\t1\tgateway-1\taccount\tkey\tservice\tprovider\tGET\t/`,
    '1000\t0\t1\tgateway-1\taccount\tkey\tservice\tprovider\tGET\t/',
    'v2\t1000\t0\t1\tgateway-1\taccount\tkey\tservice\tprovider\tGET\t/',
    '5\t0\t1\tgateway-1\taccount',
  ])('(%j) is left alone by settlement, refund, capture and cancellation', async (hold) => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 1_000);
    await store.command('hset', openKey(scene), call.usageId, hold);
    for (const how of ['charged', 'refunded', 300] as const) await settle(call, how);
    expect(await admission.drain(5_000)).toBe(0);
    expect((await ask(call)).outcome).toBe('unavailable');
    expect((await store.open(scene.accountId))[call.usageId]).toBe(hold);
    expect(await store.events(scene.accountId)).toEqual([]);
    expect(await store.balance(scene.accountId)).toBe(5_000);
    expect(lines).toHaveLength(1);
  });
});

/** The connection to Redis, whose replies are changed. */
function replying(change: (reply: string) => string): ScriptConnection {
  return {
    ready: true,
    onReady: () => {},
    send: (trip: TripEncoder, { onReply, onLost }: TripListener) => {
      const changed: TripListener['onReply'] = (bytes, start, end) => {
        const reply = Buffer.from(change(bytes.toString('latin1', start, end)));
        onReply(reply, 0, reply.length);
      };
      store.batches.send(trip, { onReply: changed, onLost });
    },
  } as unknown as ScriptConnection;
}

it('an unreadable reply counts as lost: the call is cancelled, and the process goes on', async () => {
  const scene = await openScene(store, 5_000);
  let isGarbled = true;
  const own = newAdmission(replying((reply) => (isGarbled ? '0 300 17940000 1.5 0' : reply)));
  expect(await ask(request(scene, 1_000), own)).toEqual({ outcome: 'unavailable' });
  expect(await store.balance(scene.accountId)).toBe(4_000);
  isGarbled = false;
  await until(() => own.unsettled === 0);
  expect(await store.balance(scene.accountId)).toBe(5_000);
  expect((await store.events(scene.accountId)).map(({ settlement }) => settlement)).toEqual([CANCELLED]);
  await own.drain(0);
});

describe('a reply code that the gateway does not know', () => {
  /** The other commands of the turn are asked first, so that the code is that of the last. */
  async function withCode(code: number, ...commands: ((of: Admission) => Promise<unknown>)[]): Promise<unknown[]> {
    let isChanged = true;
    const own = newAdmission(
      replying((reply) => (isChanged ? reply.replace(/\d+( \d+ \d+( \d+ \d)?)$/, `${code}$1`) : reply)),
    );
    const results = await Promise.all(commands.map((command) => command(own)));
    isChanged = false;
    await until(() => own.unsettled === 0);
    await own.drain(0);
    return results;
  }
  const admitted = (scene: Scene) => (of: Admission) => ask(request(scene, 1_000), of);
  const token =
    ({ keyId, accountId }: Scene) =>
    (of: Admission) =>
      new Promise((resolve) => of.takeForKey({ keyId, accountId, ancestors: [] }, resolve));

  it.each([11, 42, -1])(
    '(%i) admits no call, is logged once, and harms no other command of its batch',
    async (code) => {
      const scene = await openScene(store, 5_000);
      const results = await withCode(code, admitted(scene), admitted(scene));
      expect(results).toEqual([expect.objectContaining({ outcome: 'admitted' }), { outcome: 'unavailable' }]);
      // The script had admitted both: the second is taken back.
      expect(await store.balance(scene.accountId)).toBe(4_000);
      expect((await store.events(scene.accountId)).map(({ settlement }) => settlement)).toEqual([CANCELLED]);
      expect(lines).toEqual([expect.stringContaining(`"code":${code}`)]);
    },
  );

  it.each([42, 5, 8])('of a token (%i) lets no request pass, and is logged once', async (code) => {
    const scene = await openScene(store, 5_000);
    const results = await withCode(code, admitted(scene), token(scene));
    expect(results).toEqual([expect.objectContaining({ outcome: 'admitted' }), { outcome: 'unavailable' }]);
    expect(lines).toEqual([expect.stringContaining(`"code":${code}`)]);
  });

  it('is logged once, however many commands meet it', async () => {
    const scene = await openScene(store, 5_000);
    const own = newAdmission(replying((reply) => reply.replace(/^0 /, '42 ')));
    for (let i = 0; i < 3; i++) expect(await token(scene)(own)).toEqual({ outcome: 'unavailable' });
    expect(lines).toHaveLength(1);
    await own.drain(0);
  });

  it('of a settlement is logged once, and the settlement is not sent again', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 1_000);
    let isChanged = false;
    const own = newAdmission(replying((reply) => (isChanged ? '7' : reply)));
    const result = await ask(call, own);
    if (result.outcome !== 'admitted') throw new Error(result.outcome);
    isChanged = true;
    own.settle(call.usageId, call.buyer, true, REFUNDED, result.owner);
    await until(() => own.unsettled === 0);
    expect(await store.events(scene.accountId)).toHaveLength(1);
    expect(lines).toEqual([expect.stringContaining('"code":7')]);
    await own.drain(0);
  });
});

it('up to a thousand damaged things are remembered, and each is logged once an hour', () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  try {
    let logged = 0;
    const log = new DamageLog({ warn: () => logged++ });
    for (let round = 0; round < 3; round++) {
      for (let account = 0; account < 1_000; account++) log.found('wallet', `account ${account}`, 'id', 0);
    }
    expect(logged).toBe(1_000);
    vi.advanceTimersByTime(3_600_000);
    log.found('wallet', 'account 7', 'id', 0);
    expect(logged).toBe(1_001);
    expect(log.counts.get('wallet')).toBe(3_001);
  } finally {
    vi.useRealTimers();
  }
});

it.each([2 ** 53 - 1, 2 ** 53, 2 ** 60])(
  'a call of %i micro-dollars is refused like any other that the balance does not cover',
  async (price) => {
    const scene = await openScene(store, 5_000);
    expect(await admit(store, request(scene, price))).toMatchObject({
      outcome: 'insufficient_balance',
      balanceMicros: 5_000,
    });
    expect(await store.balance(scene.accountId)).toBe(5_000);
  },
);
