import fc from 'fast-check';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Claim } from '../../src/admission/claims.ts';
import {
  type AdmitRequest,
  type AdmitResult,
  CancelCommand,
  type Command,
  SettleCommand,
} from '../../src/admission/commands.ts';
import { Sweeper } from '../../src/ledger/sweep/sweeper.ts';
import { CANCELLED } from '../../src/ledger/usage-event.ts';
import { uuidv7 } from '../../src/platform/ids.ts';
import { hostOf, QUIET, Store } from '../support/store.ts';
import {
  admit,
  admitAll,
  COMPLETED,
  INSTANCE,
  newKeyId,
  newScene,
  openScene,
  REFUNDED,
  request,
  type Scene,
  settle,
} from './calls.ts';

let store: Store;
let sweeper: Sweeper;
beforeAll(async () => {
  store = await Store.open();
  sweeper = new Sweeper({
    redis: store.redis,
    keys: store.keys,
    leaseSeconds: 15,
    isReconciled: () => true,
    log: QUIET,
  });
});
afterAll(() => store.close());
beforeEach(() => store.command('flushall'));

const DAY_MS = 86_400_000;
const PRICE = 1_000;

const claimOf = (name: string, target = 'target'): Claim => ({ name: `claim-${name}`, target });
const keyed = (scene: Scene, claim: Claim, price = PRICE): AdmitRequest => ({ ...request(scene, price), claim });
const outcomes = (results: readonly AdmitResult[]): string[] => results.map(({ outcome }) => outcome);

type End = 'kept' | 'not kept' | 'refunded' | 'captured';

function endOf({ usageId, buyer, claim }: AdmitRequest, end: End, bodyDigest: string | null = 'digest'): Command {
  const refund = end === 'refunded';
  const ended =
    claim === null ? null : { name: claim.name, charged: { bodyDigest, keeps: end === 'kept', amountMicros: PRICE } };
  const captured = end === 'captured' ? 1 : null;
  return new SettleCommand(usageId, buyer, refund, refund ? REFUNDED : COMPLETED, () => {}, captured, ended);
}

const cancelOf = ({ usageId, buyer, claim }: AdmitRequest): Command =>
  new CancelCommand(usageId, buyer.accountId, CANCELLED, () => {}, claim);

const run = (...commands: Command[]): Promise<void> => store.run(commands, hostOf(store.keys, INSTANCE));
const end = (call: AdmitRequest, how: End, bodyDigest?: string | null): Promise<void> =>
  run(endOf(call, how, bodyDigest));

const claimsName = ({ accountId }: Scene): string => store.keys.claims(store.keys.shardOf(accountId), accountId);
const timesName = ({ accountId }: Scene): string => store.keys.claimTimes(store.keys.shardOf(accountId), accountId);

/** By name: state, usage id, digest of the target, digest of the body. */
async function claimsIn(scene: Scene): Promise<Record<string, string>> {
  const [claims, times] = await Promise.all([
    store.hash(claimsName(scene)),
    store.command('zrange', timesName(scene), 0, -1) as Promise<string[]>,
  ]);
  expect(times.toSorted(), 'each claim has a time, and nothing else has one').toEqual(Object.keys(claims).sort());
  return Object.fromEntries(
    Object.entries(claims).map(([name, text]) => [name, text.split('\t').toSpliced(2, 1).slice(0, 4).join(' ')]),
  );
}

/** Makes the claims of an account older. */
async function age(scene: Scene, ms: number): Promise<void> {
  for (const [name, text] of Object.entries(await store.hash(claimsName(scene)))) {
    const at = Number(text.split('\t')[2]) - ms;
    await store.command('hset', claimsName(scene), name, text.split('\t').with(2, String(at)).join('\t'));
    await store.command('zadd', timesName(scene), at, name);
  }
}

async function dieAll(): Promise<void> {
  const now = await store.now();
  for (const lease of store.keys.lease) await store.command('hset', lease, INSTANCE, now - 20_000);
  await sweeper.sweepOnce();
}

/** A key without a parent, and a child key, each of an account of its own. */
async function scenes(balance: number): Promise<[Scene, Scene]> {
  const scene = newScene();
  const root = newKeyId();
  const hash = store.keys.key(store.keys.shardOf(scene.accountId), root);
  await store.command('hset', hash, 'limit', 300, 'status', 'active', scene.keyId, '300 active 0 - - 0');
  await store.loadWallet(scene.accountId, balance);
  return [await openScene(store, balance), { ...scene, ancestors: [root] }];
}

describe('an idempotency key', () => {
  it('admits one of two equal calls of the same turn, and one of two equal calls of two gateways at once', async () => {
    const scene = await openScene(store, 10_000);
    const twice = (name: string) => [keyed(scene, claimOf(name)), keyed(scene, claimOf(name))];
    expect(outcomes(await admitAll(store, twice('a')))).toEqual(['admitted', 'call_in_progress']);
    const [one, other] = twice('b') as [AdmitRequest, AdmitRequest];
    const both = await Promise.all([admit(store, one, 'gateway-1'), admit(store, other, 'gateway-2')]);
    expect(outcomes(both).sort()).toEqual(['admitted', 'call_in_progress']);
    expect(await store.balance(scene.accountId)).toBe(10_000 - 2 * PRICE);
  });

  it('of a charged call admits no other call, whatever the wallet has, and the refused call takes a token', async () => {
    for (const scene of await scenes(PRICE)) {
      const first = keyed(scene, claimOf('a'));
      expect(await admit(store, first)).toMatchObject({ outcome: 'admitted', balanceMicros: 0 });
      await end(first, 'kept');
      const again = await admit(store, keyed(scene, claimOf('a')));
      expect(again).toMatchObject({ outcome: 'charged_before', rate: { limit: 300, remaining: 298 } });
      expect(await admit(store, keyed(scene, claimOf('b')))).toMatchObject({ outcome: 'insufficient_balance' });
      expect(await claimsIn(scene)).toEqual({ 'claim-a': `k ${first.usageId} target digest` });
      // The other account may be in the same shard.
      const events = await store.events(scene.accountId);
      expect(events.filter(({ hold }) => hold.includes(scene.accountId))).toHaveLength(1);
    }
  });

  it('with another method, path or query is a mismatch, whether the call is open or over', async () => {
    for (const scene of await scenes(10_000)) {
      const first = keyed(scene, claimOf('a'));
      await admit(store, first);
      const other = () => admit(store, keyed(scene, claimOf('a', 'other')));
      expect((await other()).outcome).toBe('idempotency_mismatch');
      await end(first, 'not kept', null);
      expect((await other()).outcome).toBe('idempotency_mismatch');
      expect(await claimsIn(scene)).toEqual({ 'claim-a': `n ${first.usageId} target -` });
    }
  });

  it('is free again after a refund, a cancellation or a sweep of the call that claimed it, and of no other call', async () => {
    for (const scene of await scenes(10_000)) {
      const ends = [
        (call: AdmitRequest) => end(call, 'refunded'),
        (call: AdmitRequest) => run(cancelOf(call)),
        () => dieAll(),
      ];
      for (const free of ends) {
        const [first, second] = [keyed(scene, claimOf('a')), keyed(scene, claimOf('a'))];
        await admit(store, first);
        await free(first);
        expect(await claimsIn(scene)).toEqual({});
        expect((await admit(store, second)).outcome).toBe('admitted');
        // Settlements of the first one that arrive late change nothing.
        await run(endOf(first, 'kept'), endOf(first, 'refunded'), cancelOf(first));
        expect(await claimsIn(scene)).toEqual({ 'claim-a': `o ${second.usageId} target -` });
        await end(second, 'refunded');
      }
      expect(await store.balance(scene.accountId)).toBe(10_000);
    }
  });

  it('of a charged call says what the call cost', async () => {
    for (const scene of await scenes(10_000)) {
      const call = keyed(scene, claimOf('a'));
      await admit(store, call);
      await end(call, 'not kept');
      const text = (await store.hash(claimsName(scene)))['claim-a'] as string;
      expect(text.split('\t').at(-1)).toBe(String(PRICE));
    }
  });

  it('is not claimed by a call that is not admitted', async () => {
    for (const scene of await scenes(PRICE - 1)) {
      const call = keyed(scene, claimOf('a'));
      expect((await admit(store, call)).outcome).toBe('insufficient_balance');
      // The cancellation comes first: its tombstone keeps the admission out.
      await run(cancelOf(call));
      expect((await admit(store, { ...keyed(scene, claimOf('a'), 0), usageId: call.usageId })).outcome).toBe(
        'unavailable',
      );
      expect(await claimsIn(scene)).toEqual({});
    }
  });

  it('lives for 24 hours by the clock of Redis, however the call ended', async () => {
    for (const scene of await scenes(10_000)) {
      const first = keyed(scene, claimOf('a'));
      await admit(store, first);
      await end(first, 'kept');
      await age(scene, DAY_MS - 5_000);
      expect((await admit(store, keyed(scene, claimOf('a')))).outcome).toBe('charged_before');
      await age(scene, 5_001);
      const next = keyed(scene, claimOf('b'));
      await admit(store, next);
      expect(await claimsIn(scene), 'the next claim deletes older ones').toEqual({
        'claim-b': `o ${next.usageId} target -`,
      });
      expect(await store.command('pttl', claimsName(scene))).toBeGreaterThan(DAY_MS - 60_000);
      expect(await store.command('pttl', timesName(scene))).toBeGreaterThan(DAY_MS - 60_000);
      await age(scene, DAY_MS);
      expect((await admit(store, keyed(scene, claimOf('b')))).outcome).toBe('admitted');
    }
  });

  it('counts as charged where Redis has lost how its call ended', async () => {
    const scene = await openScene(store, 10_000);
    const [lost, unreadable] = [keyed(scene, claimOf('a')), keyed(scene, claimOf('b'))];
    await admitAll(store, [lost, unreadable]);
    await store.command('hdel', store.keys.open[store.keys.shardOf(scene.accountId)] as string, lost.usageId);
    await store.command('hset', claimsName(scene), 'claim-b', 'z2 of a newer version');
    const again = [keyed(scene, claimOf('a')), keyed(scene, claimOf('b'))];
    expect(outcomes(await admitAll(store, again))).toEqual(['charged_before', 'charged_before']);
  });

  it('is claimed and ended even if the claims key had another type: that key is deleted', async () => {
    for (const scene of await scenes(10_000)) {
      for (const name of [claimsName(scene), timesName(scene)]) {
        await store.command('set', name, 'x');
        const call = keyed(scene, claimOf(name));
        expect((await admit(store, call)).outcome).toBe('admitted');
        await store.command('del', claimsName(scene));
        await store.command('set', claimsName(scene), 'x');
        await end(call, 'kept');
        await store.command('del', claimsName(scene), timesName(scene));
      }
      expect(await store.balance(scene.accountId)).toBe(10_000 - 2 * PRICE);
    }
  });

  it('of a damaged wallet is not claimed, and the batch goes on', async () => {
    const [victim, other] = [await openScene(store, 0), await openScene(store, 10_000)];
    await store.command('hset', store.walletName(victim.accountId), 'balance', 'abc12');
    const host = hostOf(store.keys, INSTANCE, { foundDamage: () => {} });
    const calls = [keyed(victim, claimOf('a')), keyed(other, claimOf('a'))];
    const results = await admitAll(store, calls, INSTANCE, host);
    expect(outcomes(results)).toEqual(['damaged', 'admitted']);
    expect(await claimsIn(victim)).toEqual({});
  });

  it('is refused if its account already has 100 000 of them; a call without one is admitted', async () => {
    for (const scene of await scenes(10_000)) {
      const now = await store.now();
      for (let from = 0; from < 100_000; from += 5_000) {
        const some = Array.from({ length: 5_000 }, (_, i) => [now - DAY_MS + 60_000 + from + i, `n${from + i}`]);
        await store.command('zadd', timesName(scene), ...some.flat());
      }
      expect((await admit(store, keyed(scene, claimOf('a')))).outcome).toBe('claims_full');
      expect((await admit(store, request(scene, PRICE))).outcome).toBe('admitted');
      await store.command('zadd', timesName(scene), now - DAY_MS - 1, 'n0');
      const results = await admitAll(store, [keyed(scene, claimOf('a')), keyed(scene, claimOf('b'))]);
      expect(outcomes(results), 'one that has ended makes room for one').toEqual(['admitted', 'claims_full']);
    }
  });

  it('is not looked up for an API key that is revoked, empty or not loaded: the outcome says so', async () => {
    for (const scene of await scenes(10_000)) {
      await admit(store, keyed(scene, claimOf('a')));
      const root = scene.ancestors?.[0] ?? scene.keyId;
      const hash = store.keys.key(store.keys.shardOf(scene.accountId), root);
      const again = (host = hostOf(store.keys, INSTANCE)) =>
        admitAll(store, [keyed(scene, claimOf('a'))], INSTANCE, host);
      await store.command('hset', hash, 'status', 'revoked');
      expect(outcomes(await again())).toEqual(['revoked']);
      await store.command('del', hash);
      const asked: string[] = [];
      await again(hostOf(store.keys, INSTANCE, { reloadAndRetry: (_, what) => asked.push(what) }));
      expect(asked).toEqual(['key']);
    }
  });
});

const nth = fc.nat(3);
const stepOf = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.array(
      fc.oneof(
        {
          weight: 5,
          arbitrary: fc.record({ op: fc.constant('admit' as const), call: nth, price: fc.constantFrom(0, 400, 9_999) }),
        },
        {
          weight: 3,
          arbitrary: fc.record({
            op: fc.constant('end' as const),
            call: nth,
            how: fc.constantFrom<End>('kept', 'not kept', 'refunded', 'captured'),
          }),
        },
        { weight: 1, arbitrary: fc.record({ op: fc.constant('cancel' as const), call: nth }) },
      ),
      { minLength: 1, maxLength: 5 },
    ),
  },
  { weight: 1, arbitrary: fc.constantFrom('sweep' as const, 'day' as const) },
);

/** Two names and two targets: 0 and 1 have the same of both, 2 another target, 3 another name. */
const CLAIMS = [claimOf('a'), claimOf('a'), claimOf('a', 'other'), claimOf('b')];

it('in any order of admissions, ends, sweeps and days, claims are what the model says', async () => {
  let [replaced, charged] = [0, 0];
  const property = fc.asyncProperty(
    fc.array(stepOf, { minLength: 10, maxLength: 40 }),
    fc.nat(1),
    async (steps, kind) => {
      await store.command('flushall');
      const scene = (await scenes(4_000))[kind] as Scene;
      let balance = 4_000;
      const claims = new Map<string, { state: string; id: string; target: string; body: string }>();
      const holds = new Map<string, number>();
      const tombstones = new Set<string>();
      const calls = CLAIMS.map((claim) => keyed(scene, claim, 0));
      const close = (call: AdmitRequest, how: End): void => {
        const held = holds.get(call.usageId);
        if (held === undefined) return;
        holds.delete(call.usageId);
        balance += how === 'refunded' ? held : how === 'captured' ? Math.max(0, held - 1) : 0;
        const { name } = call.claim as Claim;
        const claim = claims.get(name);
        if (claim?.id !== call.usageId) return;
        if (how === 'refunded') claims.delete(name);
        else Object.assign(claim, { state: how === 'kept' ? 'k' : 'n', body: 'digest' });
        if (how !== 'refunded') charged++;
      };
      const expected = (call: AdmitRequest, price: number): string => {
        const { name, target } = call.claim as Claim;
        const claim = claims.get(name);
        if (claim !== undefined) {
          if (claim.target !== target) return 'idempotency_mismatch';
          return claim.state === 'o' ? 'call_in_progress' : 'charged_before';
        }
        if (price > balance) return 'insufficient_balance';
        if (tombstones.has(call.usageId) || holds.has(call.usageId)) return 'unavailable';
        claims.set(name, { state: 'o', id: call.usageId, target, body: '-' });
        holds.set(call.usageId, price);
        balance -= price;
        return 'admitted';
      };
      for (const step of steps) {
        if (step === 'sweep') {
          await dieAll();
          for (const call of calls) close(call, 'refunded');
        } else if (step === 'day') {
          await age(scene, DAY_MS + 1);
          claims.clear();
          // The next claim, under a name of its own, deletes those that have ended.
          const next = keyed(scene, claimOf('next'), 0);
          await admit(store, next);
          await end(next, 'refunded');
        } else {
          for (const part of step) {
            const at = part.call;
            if (part.op === 'admit') {
              // As in life, an id is not used again once its call has ended.
              if (
                !holds.has((calls[at] as AdmitRequest).usageId) &&
                !tombstones.has((calls[at] as AdmitRequest).usageId)
              ) {
                calls[at] = { ...(calls[at] as AdmitRequest), usageId: uuidv7() };
                replaced++;
              }
              const call = { ...(calls[at] as AdmitRequest), terms: request(scene, part.price).terms };
              const told = expected(call, part.price);
              expect((await admit(store, call)).outcome).toBe(told);
            } else if (part.op === 'end') {
              await end(calls[at] as AdmitRequest, part.how);
              close(calls[at] as AdmitRequest, part.how);
            } else {
              await run(cancelOf(calls[at] as AdmitRequest));
              const { usageId } = calls[at] as AdmitRequest;
              if (!holds.has(usageId)) tombstones.add(usageId);
              close(calls[at] as AdmitRequest, 'refunded');
            }
          }
        }
        const real = Object.fromEntries(
          Array.from(claims, ([name, { state, id, target, body }]) => [name, `${state} ${id} ${target} ${body}`]),
        );
        expect(await claimsIn(scene)).toEqual(real);
        expect(await store.balance(scene.accountId)).toBe(balance);
      }
    },
  );
  await fc.assert(property, { numRuns: 60 });
  expect(replaced).toBeGreaterThan(300);
  expect(charged).toBeGreaterThan(30);
});

it('a call without an idempotency key is encoded and settled as before idempotency keys existed', async () => {
  const scene = await openScene(store, 10_000);
  const call = request(scene, PRICE);
  await admit(store, call);
  await settle(store, call, false);
  expect(await store.command('exists', claimsName(scene), timesName(scene))).toBe(0);
  expect((await store.events(scene.accountId))[0]?.hold).not.toContain('claim=');
});
