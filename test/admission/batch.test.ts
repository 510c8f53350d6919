import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CallTerms } from '../../src/admission/call-terms.ts';
import {
  AdmitCommand,
  type AdmitRequest,
  type Admitted,
  CancelCommand,
  SettleCommand,
  TakeCommand,
  type TakeResult,
} from '../../src/admission/commands.ts';
import { batchScript } from '../../src/admission/scripts.ts';
import { CANCELLED } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { freeField } from '../../src/platform/redis-keys.ts';
import { hostOf, Store } from '../support/store.ts';
import {
  admit,
  admitAll,
  COMPLETED,
  INSTANCE,
  listener,
  newScene,
  openScene,
  REFUNDED,
  request,
  requestAt,
  settle,
  take,
} from './calls.ts';

let store: Store;
beforeAll(async () => {
  store = await Store.open();
});
afterAll(() => store.close());
beforeEach(() => store.command('flushall'));

describe('the hold', () => {
  it('has the tag of the call after the fields of its terms, and no such field if the call has no tag', async () => {
    const scene = await openScene(store, 200_000);
    const listing = {
      id: scene.serviceId,
      providerId: uuidv7(),
      priceMicros: 2_000,
      freeCalls: 0,
      maxPriceMicros: 9_000,
    };
    const calls = [request(scene, 1), { ...request(scene, 1), tag: 'a/b' }, requestAt(scene, new CallTerms(listing))];
    calls.push({ ...(calls[2] as AdmitRequest), usageId: uuidv7(), tag: 'c' });
    await admitAll(store, calls);
    const holds = await store.open(scene.accountId);
    const ends = calls.map(({ usageId }) => holds[usageId]?.split('\t').slice(10));
    expect(ends).toEqual([['/x'], ['/x', 'tag=a/b'], ['/x', 'cap=9000'], ['/x', 'cap=9000', 'tag=c']]);
  });
});

describe('a Redis that restarts with its append-only file', () => {
  let kept: Store;
  beforeAll(async () => {
    kept = await Store.open(5_000, batchScript, { appendonly: true });
  });
  afterAll(() => kept.close());
  const restart = async (): Promise<void> => {
    await kept.server.stop();
    await kept.server.restart();
    await kept.reconnected();
  };

  it('still has its holds, charges and events, and gives a key at most one full bucket too many', async () => {
    const scene = await openScene(kept, 100_000);
    const [open, over] = [request(scene, 1_000), request(scene, 1_000)];
    await admitAll(kept, [open, over]);
    await settle(kept, over, false);
    const bucket = kept.keys.key(kept.keys.shardOf(scene.accountId), scene.keyId);
    expect(Number((await kept.hash(bucket)).tokens)).toBeLessThan(300 * 60_000);
    const money = () =>
      Promise.all([kept.balance(scene.accountId), kept.open(scene.accountId), kept.events(scene.accountId)]);
    const before = await money();
    await restart();
    expect(await money()).toEqual(before);
    expect(await kept.hash(bucket)).toEqual({ limit: '300', status: 'active' });
    expect(await admit(kept, request(scene, 1_000))).toMatchObject({ outcome: 'admitted', balanceMicros: 97_000 });
    expect((await kept.hash(bucket)).tokens).toBe(String(299 * 60_000));
  });
});

describe('a charge', () => {
  it('of the last cent succeeds for one of two calls of the same turn, and the wallet is not overdrawn', async () => {
    const scene = await openScene(store, 10_000);
    const results = await admitAll(store, [request(scene, 10_000), request(scene, 10_000)]);
    expect(results.map(({ outcome }) => outcome)).toEqual(['admitted', 'insufficient_balance']);
    expect(await store.balance(scene.accountId)).toBe(0);
  });

  it('of the last cent succeeds for only one of two gateways that make it at the same time', async () => {
    const scene = await openScene(store, 10_000);
    const results = await Promise.all([
      admit(store, request(scene, 10_000), 'gateway-1'),
      admit(store, request(scene, 10_000), 'gateway-2'),
    ]);
    expect(results.map(({ outcome }) => outcome).sort()).toEqual(['admitted', 'insufficient_balance']);
    expect(await store.balance(scene.accountId)).toBe(0);
  });

  it('that is refused reports the balance, leaves the wallet unchanged and opens no hold', async () => {
    const scene = await openScene(store, 9_999);
    expect(await admit(store, request(scene, 10_000))).toMatchObject({
      outcome: 'insufficient_balance',
      balanceMicros: 9_999,
    });
    expect(await store.balance(scene.accountId)).toBe(9_999);
    expect(await store.open(scene.accountId)).toEqual({});
  });

  it('of the largest amount is refunded to the micro-dollar', async () => {
    // Lua prints numbers of 15 digits and more with an exponent, unless the hold keeps the text.
    const price = 123_456_789_012_345;
    const scene = await openScene(store, 1_000_000_000_000_000);
    const call = request(scene, price);
    expect(await admit(store, call)).toMatchObject({ balanceMicros: 876_543_210_987_655 });
    await settle(store, call, true);
    expect(await store.balance(scene.accountId)).toBe(1_000_000_000_000_000);
  });
});

describe('the free tier', () => {
  it('gives exactly 100 of 200 concurrent calls a free slot', async () => {
    const scene = await openScene(store, 1_000_000);
    const turns = await Promise.all(
      Array.from({ length: 8 }, (_, gateway) =>
        admitAll(
          store,
          Array.from({ length: 25 }, () => request(scene, 1_000, 100)),
          `gateway-${gateway}`,
        ),
      ),
    );
    const admitted = turns.flat().filter((result) => result.outcome === 'admitted');
    expect(admitted).toHaveLength(200);
    expect(admitted.filter(({ freeTier }) => freeTier)).toHaveLength(100);
    expect(await store.balance(scene.accountId)).toBe(1_000_000 - 100 * 1_000);
  });

  it('gets back the slot of a refunded call, and no other slot', async () => {
    const scene = await openScene(store, 0);
    const [first, second] = [request(scene, 1_000, 2), request(scene, 1_000, 2)];
    await admitAll(store, [first, second]);
    expect((await admit(store, request(scene, 1_000, 2))).outcome).toBe('insufficient_balance');
    await settle(store, first, true);
    await settle(store, second, false);
    const used = (await store.hash(store.walletName(scene.accountId)))[freeField(scene.serviceId)];
    expect(used).toBe('1');
    expect(await admit(store, request(scene, 1_000, 2))).toMatchObject({ outcome: 'admitted', freeTier: true });
  });

  it('counts no free call for a call that is refused for lack of money', async () => {
    const scene = await openScene(store, 10);
    await store.command('hset', store.walletName(scene.accountId), freeField(scene.serviceId), 2);
    expect((await admit(store, request(scene, 1_000, 2))).outcome).toBe('insufficient_balance');
    expect((await store.hash(store.walletName(scene.accountId)))[freeField(scene.serviceId)]).toBe('2');
  });

  it('serves free-only calls until it is used up, and then refuses them, whatever the wallet has', async () => {
    const scene = await openScene(store, 4_000_000_000_000_000);
    const terms = new CallTerms({ id: scene.serviceId, providerId: uuidv7(), priceMicros: 1_000, freeCalls: 2 });
    const ask = () => admit(store, requestAt(scene, terms.freeOnly()));
    expect(await ask()).toMatchObject({ outcome: 'admitted', freeTier: true, freeLeft: 1, amountMicros: 0 });
    expect(await ask()).toMatchObject({ outcome: 'admitted', freeTier: true, freeLeft: 0 });
    const before = await store.hash(store.walletName(scene.accountId));
    expect(await ask()).toMatchObject({ outcome: 'insufficient_balance', rate: { remaining: 297 } });
    expect(await store.hash(store.walletName(scene.accountId))).toEqual(before);
    expect(await admit(store, requestAt(scene, terms))).toMatchObject({ freeTier: false, freeLeft: 0 });
  });

  it('and free services stay available to an account with a negative wallet, which a repair may leave', async () => {
    const scene = await openScene(store, -1);
    expect(await admit(store, request(scene, 0))).toMatchObject({ outcome: 'admitted', balanceMicros: -1 });
    expect(await admit(store, request(scene, 1_000, 1))).toMatchObject({ outcome: 'admitted', freeTier: true });
    expect((await admit(store, request(scene, 1_000, 1))).outcome).toBe('insufficient_balance');
  });

  it('is not spent on services that are free anyway', async () => {
    const scene = await openScene(store, 0);
    expect(await admit(store, request(scene, 0, 5))).toMatchObject({ outcome: 'admitted', freeTier: false });
    expect(await store.hash(store.walletName(scene.accountId))).toEqual({ balance: '0', credit_seq: '1' });
  });
});

it('each call of a turn costs the price of its own listing, in whatever order the calls come', async () => {
  const scene = await openScene(store, 100_000);
  const paid = request(scene, 1_000);
  const withFreeCalls = request({ ...scene, serviceId: uuidv7() }, 30_000, 2);
  const gratis = request({ ...scene, serviceId: uuidv7() }, 0);
  const turn = [paid, paid, withFreeCalls, gratis, gratis, withFreeCalls, withFreeCalls, paid].map((call) => ({
    ...call,
    usageId: uuidv7(),
  }));
  const results = await admitAll(store, turn);
  const balances = results.map((result) => (result as Admitted).balanceMicros);
  expect(balances).toEqual([99_000, 98_000, 98_000, 98_000, 98_000, 98_000, 68_000, 67_000]);
  const amounts = turn.map(({ usageId }) => store.open(scene.accountId).then((open) => open[usageId]?.split('\t')[1]));
  expect(await Promise.all(amounts)).toEqual(['1000', '1000', '0', '0', '0', '0', '30000', '1000']);
});

describe('a settlement', () => {
  it('sent twice makes one event and has one effect', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await admit(store, call);
    await settle(store, call, true);
    await settle(store, call, true);
    await settle(store, call, false);
    expect(await store.balance(scene.accountId)).toBe(5_000);
    const events = await store.events(scene.accountId);
    expect(events).toEqual([{ usageId: call.usageId, hold: expect.any(String), settlement: REFUNDED }]);
  });

  it('without a hold counts as settled elsewhere, unless it may have been carried out before', () => {
    const scene = newScene();
    let elsewhere = 0;
    const host = hostOf(store.keys, INSTANCE, { retrySettlement: () => {}, settledElsewhere: () => elsewhere++ });
    for (const sent of [false, true]) {
      const command = new SettleCommand('id', request(scene, 1).buyer, false, COMPLETED, () => {});
      command.onLost(sent, host);
      command.onReply([0], 0, host);
    }
    expect(elsewhere).toBe(1);
  });

  it('sent twice in the same turn counts once', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await admit(store, call);
    const twice = [0, 1].map(() => new SettleCommand(call.usageId, call.buyer, false, COMPLETED, () => {}));
    await store.run(twice, hostOf(store.keys, INSTANCE));
    expect(await store.events(scene.accountId)).toHaveLength(1);
    expect(await store.balance(scene.accountId)).toBe(3_000);
  });

  it('of a call whose wallet is not loaded gives nothing back, because loading the wallet includes the money', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await admit(store, call);
    await store.command('del', store.walletName(scene.accountId));
    await settle(store, call, true);
    expect(await store.command('exists', store.walletName(scene.accountId))).toBe(0);
    expect(await store.events(scene.accountId)).toHaveLength(1);
  });

  it('writes an event that contains the hold as it was opened', async () => {
    const scene = await openScene(store, 5_000);
    const call = { ...request(scene, 2_000), method: 'POST', path: '/v1/a?b=c%09' };
    await admit(store, call);
    await settle(store, call, false);
    const [event] = await store.events(scene.accountId);
    expect(event?.hold.split('\t')).toEqual([
      'v1',
      '2000',
      '0',
      expect.stringMatching(/^\d{13}$/),
      INSTANCE,
      scene.accountId,
      scene.keyId,
      scene.serviceId,
      call.terms.providerId,
      'POST',
      '/v1/a?b=c%09',
    ]);
  });
});

describe('a cancellation', () => {
  const cancel = ({ usageId, buyer }: AdmitRequest) =>
    store.run([new CancelCommand(usageId, buyer.accountId, CANCELLED, () => {})], hostOf(store.keys, INSTANCE));

  it('of an admitted call refunds it with one event', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await admit(store, call);
    await cancel(call);
    await cancel(call);
    expect(await store.balance(scene.accountId)).toBe(5_000);
    expect((await store.events(scene.accountId)).map(({ settlement }) => settlement)).toEqual([CANCELLED]);
  });

  it('that overtakes its admission keeps the admission from being carried out', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await cancel(call);
    expect((await admit(store, call)).outcome).toBe('unavailable');
    expect(await store.balance(scene.accountId)).toBe(5_000);
    expect(await store.events(scene.accountId)).toEqual([]);
    expect(await take(store, scene)).toMatchObject({ rate: { remaining: 299 } });
  });

  it('cannot be settled as if it were a call', async () => {
    const scene = await openScene(store, 5_000);
    const call = request(scene, 2_000);
    await cancel(call);
    await settle(store, call, true);
    expect(await store.balance(scene.accountId)).toBe(5_000);
    expect(await store.events(scene.accountId)).toEqual([]);
  });
});

describe('a token bucket', () => {
  const bucketOf = (scene: { accountId: string; keyId: string }): string =>
    store.keys.key(store.keys.shardOf(scene.accountId), scene.keyId);

  it('lets as many requests through at once as its limit says, then none; a 429 takes no token', async () => {
    const scene = await openScene(store, 0, 3);
    const outcomes = [];
    for (let i = 0; i < 6; i++) outcomes.push((await take(store, scene)).outcome);
    expect(outcomes).toEqual([...Array(3).fill('taken'), ...Array(3).fill('rate_limited')]);
    const { tokens, ts } = await store.hash(bucketOf(scene));
    await take(store, scene);
    expect(await store.hash(bucketOf(scene))).toMatchObject({ tokens, ts });
  });

  it.each([1, 7, 60, 299])('with a limit of %i lets a request through after exactly its Retry-After', async (limit) => {
    const scene = await openScene(store, 0, limit);
    const now = await store.now();
    await store.command('hset', bucketOf(scene), 'tokens', 0, 'ts', now);
    const refused = await take(store, scene);
    if (refused.outcome !== 'rate_limited') throw new Error(refused.outcome);
    const { retryAfterSeconds } = refused.rate;
    // As if that time had passed since.
    await store.command('hset', bucketOf(scene), 'tokens', 0, 'ts', (await store.now()) - retryAfterSeconds * 1000);
    expect((await take(store, scene)).outcome).toBe('taken');
    expect(retryAfterSeconds).toBeLessThanOrEqual(Math.ceil(60 / limit));
  });

  it('is full after its Reset, and never more than full', async () => {
    const scene = await openScene(store, 0, 60);
    const now = await store.now();
    await store.command('hset', bucketOf(scene), 'tokens', 0, 'ts', now - 3_600_000);
    expect(await take(store, scene)).toMatchObject({ rate: { remaining: 59, resetSeconds: 1 } });
  });

  it('is neither refilled nor emptied when the clock is set back', async () => {
    const scene = await openScene(store, 0, 60);
    await store.command('hset', bucketOf(scene), 'tokens', 120_000, 'ts', (await store.now()) + 3_600_000);
    expect(await take(store, scene)).toMatchObject({ outcome: 'taken', rate: { remaining: 1 } });
  });

  it('of a suspended account lets nothing through, and takes nothing', async () => {
    const scene = await openScene(store, 5_000, 60);
    await take(store, scene);
    const tokens = await store.command('hget', bucketOf(scene), 'tokens');
    await store.command('hset', bucketOf(scene), 'status', 'suspended');
    expect((await take(store, scene)).outcome).toBe('suspended');
    expect((await admit(store, request(scene, 1_000))).outcome).toBe('suspended');
    expect(await store.command('hget', bucketOf(scene), 'tokens')).toBe(tokens);
    expect(await store.balance(scene.accountId)).toBe(5_000);
  });

  it('follows a changed limit, and a revocation, from the very next call', async () => {
    const scene = await openScene(store, 5_000, 60);
    await take(store, scene);
    await store.loadKey(scene.keyId, scene.accountId, 2);
    expect(await take(store, scene)).toMatchObject({ outcome: 'taken', rate: { limit: 2, remaining: 1 } });
    await store.loadKey(scene.keyId, scene.accountId, 2, 'revoked');
    expect((await take(store, scene)).outcome).toBe('revoked');
    expect((await admit(store, request(scene, 1_000))).outcome).toBe('revoked');
    expect(await store.balance(scene.accountId)).toBe(5_000);
  });

  it('of an address is made on demand and forgotten when it is full', async () => {
    const results: TakeResult[] = [];
    const takes = Array.from({ length: 3 }, () => new TakeCommand(null, '192.0.2.7', 2, (r) => results.push(r)));
    await store.run(takes, hostOf(store.keys, INSTANCE));
    expect(results.map(({ outcome }) => outcome)).toEqual(['taken', 'taken', 'rate_limited']);
    const ttl = (await store.command('pttl', store.keys.ip('192.0.2.7'))) as number;
    expect(ttl).toBeGreaterThan(59_000);
    expect(ttl).toBeLessThanOrEqual(61_000);
  });

  it('of reads, of a person or of control is not used up by calls, and lets as many requests through as its own limit says', async () => {
    const scene = await openScene(store, 0, 3);
    const sibling = { ...scene, keyId: newScene().keyId };
    await store.loadKey(sibling.keyId, sibling.accountId, 3);
    for (let i = 0; i < 3; i++) await take(store, scene);
    expect((await take(store, scene)).outcome).toBe('rate_limited');
    const { tokens, ts } = await store.hash(bucketOf(scene));
    for (const remaining of [2, 1, 0]) {
      expect(await take(store, scene, 'reads')).toMatchObject({ outcome: 'taken', rate: { limit: 3, remaining } });
    }
    expect(await take(store, scene, 'reads')).toMatchObject({ outcome: 'rate_limited', rate: { limit: 3 } });
    expect(await take(store, sibling, 'reads')).toMatchObject({ outcome: 'taken', rate: { remaining: 2 } });
    expect(await take(store, scene, 'person')).toMatchObject({
      outcome: 'taken',
      rate: { limit: 120, remaining: 119 },
    });
    // The account has one bucket of control, whichever of its keys draws on it.
    await store.command(
      'hset',
      store.keys.control(store.keys.shardOf(scene.accountId), scene.accountId),
      'tokens',
      120_000,
      'ts',
      await store.now(),
    );
    expect(await take(store, scene, 'control')).toMatchObject({ outcome: 'taken', rate: { limit: 30, remaining: 1 } });
    expect(await take(store, sibling, 'control')).toMatchObject({
      outcome: 'taken',
      rate: { limit: 30, remaining: 0 },
    });
    expect(await take(store, scene, 'control')).toMatchObject({ outcome: 'rate_limited', rate: { limit: 30 } });
    expect(await store.hash(bucketOf(scene))).toMatchObject({ tokens, ts });
  });

  it.each(['reads', 'person', 'control'] as const)(
    'of %s refuses a key that is revoked or suspended, and asks for a key to be loaded if it is missing',
    async (bucket) => {
      const scene = await openScene(store, 0, 60);
      for (const status of ['suspended', 'revoked'] as const) {
        await store.loadKey(scene.keyId, scene.accountId, 60, status);
        expect(await take(store, scene, bucket)).toMatchObject({ outcome: status, rate: { limit: 60 } });
      }
      await store.command('del', bucketOf(scene));
      let asked = '';
      const host = hostOf(store.keys, INSTANCE, { reloadAndRetry: (_, what) => (asked = what) });
      await store.run([new TakeCommand(scene.keyId, scene.accountId, 0, () => {}, bucket)], host);
      expect(asked).toBe('key');
    },
  );

  it('gives a token to a call refused for lack of money, and none to a call whose state must be loaded first', async () => {
    const scene = await openScene(store, 0, 60);
    expect(await admit(store, request(scene, 1))).toMatchObject({ rate: { remaining: 59 } });
    await store.command('del', store.walletName(scene.accountId));
    let asked = '';
    const host = hostOf(store.keys, INSTANCE, { reloadAndRetry: (_, what) => (asked = what) });
    await store.run(
      [
        new AdmitCommand(
          request(scene, 1),
          listener(() => {}),
        ),
      ],
      host,
    );
    expect(asked).toBe('wallet');
    expect(Number((await store.hash(bucketOf(scene))).tokens)).toBeGreaterThanOrEqual(59 * 60_000);
  });
});
